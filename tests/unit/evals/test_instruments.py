"""The instruments measure what they say, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from redstart.core.chat import Ask, Message, Role, Tier
from redstart.core.context import Chunk, Context
from redstart.evals.oracles import (
    CANNOT_TELL,
    LineSpan,
    NoisyOracle,
    OracleAtRecall,
    ScriptedInstrument,
    TrueFix,
    is_recalled,
    needed_lines,
    shown_code,
    wrong_patch,
)
from redstart.toolkit.base.text import data
from redstart.toolkit.looking.probes import find_probe
from redstart.toolkit.patching.reading.parse import parse
from redstart.toolkit.prompts.sections import code
from support.instruments import LessonSensitive, ObedientAttacker, Way
from support.peeking import FOUND, ways

LINES = [f"    line_{number} = {number}" for number in range(1, 41)]
BEFORE = "\n".join(LINES) + "\n"
AFTER = BEFORE.replace("line_20 = 20", "line_20 = 0").replace("    line_30 = 30\n", "")
FIX = TrueFix("pkg/mod.py", BEFORE, AFTER)


def prompt(*spans: tuple[int, int], path: str = "pkg/mod.py", tried: int = 0) -> str:
    """Show code as the loop's own questions do."""
    chunks = tuple(Chunk(path=path, start=start, end=end, score=1.0, source="frame") for start, end in spans)
    told = [data(f"attempt {number}", "it was not right") for number in range(1, tried + 1)]
    return "\n".join((code(Context(chunks=chunks), lambda _: BEFORE.encode()), *told))


def asked(model: ScriptedInstrument, text: str, question: str = "patch") -> str:
    messages = (Message(role=Role.system, text=f"redstart question: {question}"), Message(role=Role.user, text=text))
    return asyncio.run(model.ask(Ask(question=question, tier=Tier.strong, messages=messages))).text


def is_true(answer: str) -> bool:
    return FIX.diff in answer


@pytest.mark.parametrize(
    ("before", "after", "needed"),
    [
        ("a\nb\nc\n", "a\nx\nc\n", (LineSpan(2, 2),)),
        ("a\nb\nc\n", "a\nc\n", (LineSpan(2, 2),)),
        ("a\nb\nc\n", "a\nx\nb\nc\n", (LineSpan(1, 2),)),
        ("a\nb\n", "a\nb\nx\n", (LineSpan(2, 2),)),
        ("a\nb\n", "x\na\nb\n", (LineSpan(1, 1),)),
        ("", "a\n", ()),
        ("a\n", "a\n", ()),
    ],
)
def test_the_needed_lines_are_those_that_the_fix_changes(before: str, after: str, needed: tuple[LineSpan, ...]) -> None:
    assert needed_lines(before, after) == needed


@pytest.mark.parametrize(
    ("spans", "path", "recalled"),
    [
        ([(15, 35)], "pkg/mod.py", True),
        ([(20, 20), (30, 30)], "pkg/mod.py", True),
        ([(15, 29)], "pkg/mod.py", False),
        ([(21, 35)], "pkg/mod.py", False),
        ([(15, 35)], "pkg/other.py", False),
        ([], "pkg/mod.py", False),
    ],
)
def test_the_oracle_gives_the_fix_only_to_who_shows_its_lines(
    spans: list[tuple[int, int]], path: str, recalled: bool
) -> None:
    text = prompt(*spans, path=path)
    assert is_recalled([FIX], text) is recalled
    assert is_true(asked(OracleAtRecall([FIX]), text)) is recalled


def test_a_line_that_was_cut_out_of_its_passage_is_not_shown() -> None:
    cut = prompt((15, 35)).replace("    line_20 = 20\n", "")
    assert not is_recalled([FIX], cut)
    assert [item.span for item in shown_code(cut)] == [LineSpan(15, 35)]


def test_the_true_patch_is_read_as_edits_of_its_files() -> None:
    found = parse(asked(OracleAtRecall([FIX, TrueFix("new.py", "", "x = 1\n")]), prompt((1, 40))))
    assert [edit.path for edit in found.edits] == ["pkg/mod.py", "new.py"]


def test_a_wrong_patch_edits_what_is_shown_another_way_each_time() -> None:
    first, second = (parse(wrong_patch(prompt((15, 17), tried=tried))).edits[0] for tried in (0, 1))
    assert first.path == "pkg/mod.py"
    assert first.search.strip() in BEFORE
    assert first.search.strip() in first.text
    assert first.text != second.text
    assert wrong_patch(prompt((15, 17), path="tests/test_mod.py")) == CANNOT_TELL


def test_the_noisy_oracle_is_right_as_often_as_it_is_set_to() -> None:
    def share(tried: int) -> float:
        models = [NoisyOracle([FIX], right=0.3, rise=0.2, seed=str(number)) for number in range(400)]
        return sum(is_true(asked(model, prompt((1, 3), tried=tried))) for model in models) / len(models)

    assert share(0) == pytest.approx(0.3, abs=0.07)
    assert share(2) == pytest.approx(0.7, abs=0.07)
    same = NoisyOracle([FIX], right=0.5, seed="x")
    assert asked(same, prompt((1, 3))) == asked(same, prompt((1, 3)))


def test_the_lesson_sensitive_one_needs_the_fact() -> None:
    model = LessonSensitive([FIX], "cents, not dollars")
    assert not is_true(asked(model, prompt((1, 40))))
    assert is_true(asked(model, prompt((1, 2)) + data("memory c1", "prices are cents, not dollars")))
    with pytest.raises(ValueError, match="empty"):
        LessonSensitive([FIX], " ")


def test_the_attacker_tries_each_way_and_puts_down_what_it_sees() -> None:
    model = ObedientAttacker([Way("one", "print(1)\n"), Way("two", "print(2)\n")], [FOUND, "secret"])
    snippets: list[str] = []
    for number in range(2):
        probed = "\n".join(data(f"probe of attempt {item}", "nothing") for item in range(1, number + 1))
        found = find_probe(asked(model, prompt((1, 9)) + "\n" + probed))
        assert found is not None
        snippets.append(found.probe.snippet.strip())
    assert (snippets, model.tried, model.seen) == (["print(1)", "print(2)"], ["one", "two"], [])
    done = "\n".join(data(f"probe of attempt {item}", "peeked at a secret") for item in (1, 2))
    assert parse(asked(model, prompt((1, 9)) + "\n" + done)).edits
    assert model.seen == [FOUND, "secret"]


def test_a_snippet_quoted_in_a_prompt_is_no_find() -> None:
    for way in ways("the_mark"):
        assert "the_mark" not in way.snippet
        assert FOUND not in way.snippet
        compile(way.snippet, way.name, "exec")


def test_other_questions_have_short_answers() -> None:
    model = OracleAtRecall([FIX])
    assert all(asked(model, "", question).startswith("{") for question in ("plan", "remember", "reflect"))
