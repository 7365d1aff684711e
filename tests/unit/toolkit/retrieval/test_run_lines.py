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


def retrieve_context(tree: Mapping[str, bytes], spectrum: Spectrum | None, files: int = 12) -> Context:
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


def list_paths(context: Context) -> list[str]:
    return list(dict.fromkeys(chunk.path for chunk in context.chunks if chunk.source != "test"))


def build_spectrum(**files: tuple[tuple[int, int, int], ...]) -> Spectrum:
    named_files = {f"src/{name}.py": lines for name, lines in files.items()}
    return Spectrum(red=2, green=50, files={TEST: ((2, 2, 50),), **named_files})


def test_executed_code_is_found_without_matching_words() -> None:
    assert "src/quotes.py" not in list_paths(retrieve_context(TREE, None))
    context = retrieve_context(TREE, build_spectrum(render=((2, 2, 50),), quotes=((2, 2, 0),)))
    assert "src/quotes.py" in list_paths(context)
    assert {chunk.source for chunk in context.chunks if chunk.path == "src/quotes.py"} == {"run"}


def test_failing_test_itself_is_not_a_suspect() -> None:
    only_tests = Spectrum(red=2, green=0, files={TEST: ((1, 2, 0), (2, 2, 0))})
    assert retrieve_context(TREE, only_tests) == retrieve_context(TREE, None)


def test_code_run_only_by_failing_tests_ranks_first() -> None:
    context = retrieve_context(TREE, build_spectrum(quotes=((2, 2, 0),), rules=((2, 2, 50),)))
    assert list_paths(context).index("src/quotes.py") < list_paths(context).index("src/rules.py")


def test_code_not_run_by_failing_tests_scores_less() -> None:
    before, after = retrieve_context(TREE, None), retrieve_context(TREE, build_spectrum(render=((2, 2, 50),)))
    score = {
        name: next(c.score for c in item.chunks if c.path == "src/unused.py")
        for name, item in (("before", before), ("after", after))
    }
    assert score["after"] == round(score["before"] / 2, 6)


def test_large_file_is_truncated_to_its_suspicious_lines() -> None:
    line = 4 * 120 + 2
    context = retrieve_context(TREE, build_spectrum(rules=((2, 2, 50), (line, 2, 0), (line + 4, 1, 30))))
    line_ranges = [(chunk.start, chunk.end) for chunk in context.chunks if chunk.path == "src/rules.py"]
    assert any(start <= line <= end for start, end in line_ranges)
    assert not any(start <= 2 <= end for start, end in line_ranges)


def test_executed_file_outside_the_tree_is_skipped() -> None:
    assert (
        retrieve_context(TREE, build_spectrum(render=((2, 2, 50),), gone=((1, 2, 0),))).chunks
        == retrieve_context(TREE, build_spectrum(render=((2, 2, 50),))).chunks
    )
