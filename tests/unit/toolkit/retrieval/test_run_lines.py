"""How retrieval uses the lines that failing tests were seen running."""

from __future__ import annotations

from collections.abc import Mapping

from redstart.core.context import Context
from redstart.core.report import Case, Outcome
from redstart.core.spectrum import Spectrum
from redstart.toolkit.base.search import walk_search
from redstart.toolkit.retrieval.rank import RankingQuestion, retrieve

TEST = "tests/test_texts.py"
TREE = {
    TEST: b"def test_texts(source, expected):\n    assert render(source) == expected\n",
    "src/render.py": b"def render(source):\n    return rules(source)\n",
    "src/rules.py": b"".join(b"def rule_%d(state):\n    return state\n\n\n" % n for n in range(200)),
    "src/quotes.py": b"def quotes(state):\n    return state\n",
    "src/unused.py": b"def render_source(source):\n    return render(source)\n",
}


def retrieved(tree: Mapping[str, bytes], spectrum: Spectrum | None, files: int = 12) -> Context:
    case = Case(id=f"{TEST}::test_texts[1]", outcome=Outcome.failed, message="assert 'a' == 'b'")
    question = RankingQuestion(
        cases=[case],
        goal="",
        tests=[TEST],
        is_test=lambda path: path.startswith("tests/"),
        files=files,
        spectrum=spectrum,
    )
    return retrieve(question, sorted(tree), tree.get, walk_search(tree, tree.get))


def paths(context: Context) -> list[str]:
    return list(dict.fromkeys(chunk.path for chunk in context.chunks if chunk.source != "test"))


def ran(**files: tuple[tuple[int, int, int], ...]) -> Spectrum:
    named = {f"src/{name}.py": lines for name, lines in files.items()}
    return Spectrum(red=2, green=50, files={TEST: ((2, 2, 50),), **named})


def test_code_that_no_word_leads_to_is_found_by_being_run() -> None:
    assert "src/quotes.py" not in paths(retrieved(TREE, None))
    found = retrieved(TREE, ran(render=((2, 2, 50),), quotes=((2, 2, 0),)))
    assert "src/quotes.py" in paths(found)
    assert {chunk.source for chunk in found.chunks if chunk.path == "src/quotes.py"} == {"run"}


def test_the_test_itself_is_no_suspect() -> None:
    only_tests = Spectrum(red=2, green=0, files={TEST: ((1, 2, 0), (2, 2, 0))})
    assert retrieved(TREE, only_tests) == retrieved(TREE, None)


def test_what_only_red_tests_run_comes_before_what_all_run() -> None:
    found = retrieved(TREE, ran(quotes=((2, 2, 0),), rules=((2, 2, 50),)))
    assert paths(found).index("src/quotes.py") < paths(found).index("src/rules.py")


def test_code_that_no_red_test_runs_counts_for_less() -> None:
    before, after = retrieved(TREE, None), retrieved(TREE, ran(render=((2, 2, 50),)))
    score = {
        name: next(c.score for c in item.chunks if c.path == "src/unused.py")
        for name, item in (("before", before), ("after", after))
    }
    assert score["after"] == round(score["before"] / 2, 6)


def test_a_large_file_is_cut_where_the_suspicious_lines_are() -> None:
    line = 4 * 120 + 2
    found = retrieved(TREE, ran(rules=((2, 2, 50), (line, 2, 0), (line + 4, 1, 30))))
    shown = [(chunk.start, chunk.end) for chunk in found.chunks if chunk.path == "src/rules.py"]
    assert any(start <= line <= end for start, end in shown)
    assert not any(start <= 2 <= end for start, end in shown)


def test_a_file_that_is_not_in_the_tree_is_passed_over() -> None:
    assert (
        retrieved(TREE, ran(render=((2, 2, 50),), gone=((1, 2, 0),))).chunks
        == retrieved(TREE, ran(render=((2, 2, 50),))).chunks
    )
