from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest

from redstart.core.context import Chunk, Context
from redstart.core.report import Case, Outcome
from redstart.toolkit.base.search import WordHit, walk_search
from redstart.toolkit.retrieval.rank import MAX_CASES, RankingQuestion, retrieve

TEST = b"""from shop.cart import Cart

def test_total():
    assert Cart().grand_total() == 3

def test_other():
    assert helper() == 3
"""
TREE = {
    "src/shop/__init__.py": b"",
    "src/shop/cart.py": b"class Cart:\n    def grand_total(self):\n        return 2\n",
    "src/shop/tax.py": b"def tax(cart):\n    return cart.grand_total() * 2\n",
    "src/shop/far.py": b"def far():\n    return 0\n",
    "README.md": b"call grand_total on a Cart\n",
    "tests/test_cart.py": TEST,
}


def is_test(path: str) -> bool:
    return path.startswith("tests/")


def create_failing_case(test_id: str = "tests/test_cart.py::test_total", detail: str = "") -> Case:
    return Case(id=test_id, outcome=Outcome.failed, message="assert 2 == 3", detail=detail)


def retrieve_context(
    tree: Mapping[str, bytes], cases: Sequence[Case], *, goal: str = "", budget: int = 24_000, tests: Sequence[str] = ()
) -> Context:
    tests = tests or sorted({case.id.partition("::")[0] for case in cases})
    question = RankingQuestion(cases=cases, goal=goal, tests=tests, is_test=is_test, budget=budget)
    return retrieve(question, sorted(tree), tree.get, walk_search(tree, tree.get))


def list_paths(context: Context) -> list[str]:
    return [chunk.path for chunk in context.chunks]


def build_large_file(middle: str, before: int = 300) -> bytes:
    return ("pad = 0\n" * before + middle + "pad = 0\n" * 300).encode()


def read_chunk(tree: Mapping[str, bytes], chunk: Chunk) -> str:
    return "\n".join(tree[chunk.path].decode().split("\n")[chunk.start - 1 : chunk.end])


def test_failing_test_comes_first_then_the_related_code() -> None:
    context = retrieve_context(TREE, [create_failing_case()])
    assert context.chunks[0].source == "test"
    assert read_chunk(TREE, context.chunks[0]).startswith("def test_total")
    assert "test_other" not in read_chunk(TREE, context.chunks[0])
    assert list_paths(context)[:3] == ["tests/test_cart.py", "src/shop/cart.py", "src/shop/tax.py"]
    assert "src/shop/far.py" not in list_paths(context)
    assert context.chunks[1] == Chunk(
        path="src/shop/cart.py", start=1, end=3, score=context.chunks[1].score, source="search"
    )
    assert context.left_out == 0
    scores = [chunk.score for chunk in context.chunks]
    assert scores == sorted(scores, reverse=True)


def test_traceback_frame_leads_to_the_source() -> None:
    detail = "tests/test_cart.py:4: in test_total\nsrc/shop/far.py:1: in far\nsrc/shop/tax.py:2: in tax\nE  ValueError"
    tree = {path: data for path, data in TREE.items() if path != "src/shop/cart.py"}
    tree["tests/test_cart.py"] = b"def test_total():\n    assert 0\n"
    context = retrieve_context(tree, [create_failing_case(detail=detail)])
    chunks = [(chunk.path, chunk.source) for chunk in context.chunks[1:]]
    assert chunks == [("src/shop/tax.py", "frame"), ("src/shop/far.py", "frame")]


def test_file_named_like_the_test_is_found() -> None:
    tree = {
        "src/ledger.py": b"x = 1\n",
        "src/other.py": b"x = 1\n",
        "tests/test_ledger.py": b"def test_a():\n    assert 0\n",
    }
    context = retrieve_context(tree, [create_failing_case("tests/test_ledger.py::test_a")])
    assert [(chunk.path, chunk.source) for chunk in context.chunks][1:] == [("src/ledger.py", "name")]


def test_large_file_shows_only_the_relevant_functions() -> None:
    function = "@a\n@b\n@c\n@d\ndef grand_total():\n    return 2\n"
    tree = dict(TREE) | {"src/shop/cart.py": build_large_file(function)}
    (chunk,) = (
        item for item in retrieve_context(tree, [create_failing_case()]).chunks if item.path == "src/shop/cart.py"
    )
    pad = "pad = 0\n" * 2
    assert read_chunk(tree, chunk) + "\n" == pad + function + pad


def test_long_function_shows_only_separate_excerpts_around_matches() -> None:
    body = (
        "def long():\n"
        + "    pad()\n" * 200
        + "    grand_total()\n"
        + "    pad()\n" * 200
        + "    Cart()\n"
        + "    pad()\n" * 200
    )
    tree = dict(TREE) | {"src/shop/tax.py": body.encode()}
    chunks = [
        chunk for chunk in retrieve_context(tree, [create_failing_case()]).chunks if chunk.path == "src/shop/tax.py"
    ]
    assert sorted(read_chunk(tree, chunk).replace("pad()", "").split() for chunk in chunks) == [
        ["Cart()"],
        ["grand_total()"],
    ]


def test_search_results_outside_the_tree_are_ignored() -> None:
    question = RankingQuestion(cases=[create_failing_case()], goal="", tests=["tests/test_cart.py"], is_test=is_test)
    inside = walk_search(TREE, TREE.get)
    outside = [WordHit(f"other/m{n}.py", 1, "grand_total", False) for n in range(40)]
    assert retrieve(question, sorted(TREE), TREE.get, lambda terms: [*outside, *inside(terms)]) == retrieve(
        question, sorted(TREE), TREE.get, inside
    )


def test_case_without_a_file_is_not_shown() -> None:
    context = retrieve_context(TREE, [create_failing_case("made/by/a/plugin.py::test_it"), create_failing_case()])
    assert "made/by/a/plugin.py" not in list_paths(context)
    assert context.chunks[0].path == "tests/test_cart.py"


def test_chunks_of_a_file_never_overlap() -> None:
    body = "".join(f"def f{n}():\n    grand_total()\n    Cart()\n\n" for n in range(10))
    tree = dict(TREE) | {"src/shop/cart.py": build_large_file(body)}
    spans = sorted(
        (chunk.path, chunk.start, chunk.end) for chunk in retrieve_context(tree, [create_failing_case()]).chunks
    )
    for before, after in itertools.pairwise(spans):
        assert before[0] != after[0] or after[1] > before[2] + 1


def test_pieces_with_equal_start_and_weight_are_both_ranked() -> None:
    text = "grand_total\ndef f():\n    grand_total\n" + "pad = 0\n" * 300
    tree = dict(TREE) | {"src/shop/tax.py": text.encode()}
    assert "src/shop/tax.py" in list_paths(retrieve_context(tree, [create_failing_case()]))


def test_budget_is_kept_and_omissions_are_counted() -> None:
    tree = dict(TREE) | {f"src/m{n}.py": b"grand_total()  # " + b"x" * 400 + b"\n" for n in range(30)}
    context = retrieve_context(tree, [create_failing_case()], budget=2_000)
    assert sum(len(read_chunk(tree, chunk)) + 1 for chunk in context.chunks) <= 2_000
    assert len(context.chunks) > 3
    assert context.left_out == 30 + 3 - (len(context.chunks) - 1)


def test_failing_test_is_shown_at_any_budget() -> None:
    context = retrieve_context(TREE, [create_failing_case()], budget=0)
    assert [chunk.source for chunk in context.chunks] == ["test"]


def test_small_file_that_exceeds_the_budget_is_truncated() -> None:
    filler = "".join(f"def f{n}():\n    return {n}\n\n" for n in range(60))
    tree = dict(TREE) | {
        "src/shop/cart.py": (filler + "class Cart:\n    def grand_total(self):\n        return 2\n").encode()
    }
    context = retrieve_context(tree, [create_failing_case()], budget=700)
    (chunk,) = (item for item in context.chunks if item.path == "src/shop/cart.py")
    assert chunk.start > 100
    assert "grand_total" in read_chunk(tree, chunk)


def test_only_the_first_failing_cases_are_used() -> None:
    body = "".join(f"def test_{n}():\n    assert thing_{n}()\n\n" for n in range(30))
    tree = {"tests/test_all.py": body.encode()} | {
        f"src/m{n}.py": f"def thing_{n}(): ...\n".encode() for n in range(30)
    }
    cases = [create_failing_case(f"tests/test_all.py::test_{n}") for n in range(30)]
    passing_cases = [Case(id="tests/test_all.py::test_29", outcome=Outcome.passed)]
    source_paths = {
        path for path in list_paths(retrieve_context(tree, [*passing_cases, *cases])) if path.startswith("src/")
    }
    assert source_paths == {f"src/m{n}.py" for n in range(MAX_CASES)}


def test_a_goal_without_cases_finds_code() -> None:
    assert list_paths(retrieve_context(TREE, [], goal="let Cart round its grand_total"))[0] == "src/shop/cart.py"
    assert retrieve_context(TREE, [], goal="").chunks == ()


def test_binary_huge_broken_and_missing_files_are_harmless() -> None:
    tree = dict(TREE) | {
        "src/blob.py": b"grand_total\0",
        "src/huge.py": b"grand_total()\n" * 60_000,
        "src/broken.py": b"def grand_total(:\n",
        "src/latin.py": b"grand_total = '\xff'\n",
        "src/logo.png": b"grand_total",
    }
    read = dict(tree)
    del read["src/shop/tax.py"]
    question = RankingQuestion(cases=[create_failing_case()], goal="", tests=["tests/test_cart.py"], is_test=is_test)
    context = retrieve(question, sorted(tree), read.get, walk_search(read, read.get))
    assert {"src/broken.py", "src/latin.py", "src/shop/cart.py"} <= set(list_paths(context))
    assert not {"src/blob.py", "src/huge.py", "src/logo.png", "src/shop/tax.py"} & set(list_paths(context))


def test_each_file_is_read_and_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = dict(TREE) | {
        "src/shop/cart.py": build_large_file("class Cart:\n    def grand_total(self):\n        return 2\n")
    }
    reads: list[str] = []
    parses: list[bytes] = []
    original_compile = compile

    def read(path: str) -> bytes | None:
        reads.append(path)
        return tree.get(path)

    def count_compile(source: bytes, *args: object, **options: object) -> object:
        parses.append(source)
        return original_compile(source, *args, **options)  # type: ignore[call-overload]

    monkeypatch.setattr("ast.compile", count_compile, raising=False)
    cases = [create_failing_case(), create_failing_case("tests/test_cart.py::test_other")]
    question = RankingQuestion(cases=cases, goal="", tests=["tests/test_cart.py"], is_test=is_test)
    retrieve(question, sorted(tree), read, walk_search(tree, tree.get))
    assert len(reads) == len(set(reads))
    assert tree["src/shop/cart.py"] in parses
    assert len(parses) == len(set(parses))


SCRIPT = """
from redstart.core.report import Case
from redstart.toolkit.base.search import WordHit, walk_search
from redstart.toolkit.retrieval.rank import RankingQuestion, retrieve
tree = {f"src/m{n}.py": b"alpha(beta, gamma)\\ndef delta(): ...\\n" * 3 for n in range(40)}
tree["tests/test_m.py"] = b"def test_x():\\n    alpha(beta).gamma(delta=1)\\n"
case = Case(id="tests/test_m.py::test_x", outcome="failed", message="no alpha")
question = RankingQuestion([case], "", ["tests/test_m.py"], lambda path: path.startswith("tests/"), 900)
print(retrieve(question, list(tree), tree.get, walk_search(tree, tree.get)).model_dump_json())
"""


@pytest.mark.slow
def test_ranking_does_not_depend_on_the_hash_seed() -> None:
    answers = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in range(3)
    }
    assert len(answers) == 1
    assert b"src/m" in answers.pop()


def test_test_helper_ranks_below_equally_imported_source() -> None:
    test = b"from shop.far import far\nfrom tests.helpers import build\n\ndef test_total():\n    assert far(build())\n"
    tree = {**TREE, "tests/test_cart.py": test, "tests/helpers.py": b"def build():\n    return 0\n"}
    scores = {chunk.path: chunk.score for chunk in retrieve_context(tree, [create_failing_case()]).chunks}
    assert 0 < scores["tests/helpers.py"] < scores["src/shop/far.py"] / 5
