"""The instruments measure what they say, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from redstart.core.chat import Ask, Message, Role, Tier
from redstart.core.context import Chunk, Context
from redstart.evals.scripted_models import (
    CANNOT_TELL,
    LineSpan,
    NoisyOracle,
    OracleAtRecall,
    ScriptedInstrument,
    TrueFix,
    find_needed_lines,
    find_passages,
    is_recalled,
    make_wrong_patch,
)
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.model_tools.probes import find_probe
from redstart.toolkit.patching.reading.parse import parse
from redstart.toolkit.prompts.sections import build_code_section
from support.instruments import LessonSensitive, ObedientAttacker, Way
from support.peeking import FOUND, list_techniques

LINES = [f"    line_{number} = {number}" for number in range(1, 41)]
BEFORE = "\n".join(LINES) + "\n"
AFTER = BEFORE.replace("line_20 = 20", "line_20 = 0").replace("    line_30 = 30\n", "")
FIX = TrueFix("pkg/mod.py", BEFORE, AFTER)


def prompt(*spans: tuple[int, int], path: str = "pkg/mod.py", tried: int = 0) -> str:
    """Show code as the loop's own questions do."""
    chunks = tuple(Chunk(path=path, start=start, end=end, score=1.0, source="frame") for start, end in spans)
    attempts = [wrap_untrusted(f"attempt {number}", "it was not right") for number in range(1, tried + 1)]
    return "\n".join((build_code_section(Context(chunks=chunks), lambda _: BEFORE.encode()), *attempts))


def ask_model(model: ScriptedInstrument, text: str, question: str = "patch") -> str:
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
def test_needed_lines_are_the_lines_the_fix_changes(before: str, after: str, needed: tuple[LineSpan, ...]) -> None:
    assert find_needed_lines(before, after) == needed


@pytest.mark.parametrize(
    ("spans", "path", "expected"),
    [
        ([(15, 35)], "pkg/mod.py", True),
        ([(20, 20), (30, 30)], "pkg/mod.py", True),
        ([(15, 29)], "pkg/mod.py", False),
        ([(21, 35)], "pkg/mod.py", False),
        ([(15, 35)], "pkg/other.py", False),
        ([], "pkg/mod.py", False),
    ],
)
def test_oracle_gives_the_fix_only_when_shown_its_lines(
    spans: list[tuple[int, int]], path: str, expected: bool
) -> None:
    text = prompt(*spans, path=path)
    assert is_recalled([FIX], text) is expected
    assert is_true(ask_model(OracleAtRecall([FIX]), text)) is expected


def test_line_cut_out_of_its_passage_does_not_count_as_shown() -> None:
    trimmed_prompt = prompt((15, 35)).replace("    line_20 = 20\n", "")
    assert not is_recalled([FIX], trimmed_prompt)
    assert [item.span for item in find_passages(trimmed_prompt)] == [LineSpan(15, 35)]


def test_true_patch_parses_as_edits_of_its_files() -> None:
    parsed_answer = parse(ask_model(OracleAtRecall([FIX, TrueFix("new.py", "", "x = 1\n")]), prompt((1, 40))))
    assert [edit.path for edit in parsed_answer.edits] == ["pkg/mod.py", "new.py"]


def test_wrong_patch_changes_the_shown_code_differently_each_time() -> None:
    first_edit, second_edit = (
        parse(make_wrong_patch(prompt((15, 17), tried=attempts))).edits[0] for attempts in (0, 1)
    )
    assert first_edit.path == "pkg/mod.py"
    assert first_edit.search.strip() in BEFORE
    assert first_edit.search.strip() in first_edit.text
    assert first_edit.text != second_edit.text
    assert make_wrong_patch(prompt((15, 17), path="tests/test_mod.py")) == CANNOT_TELL


def test_noisy_oracle_is_right_at_the_configured_rate() -> None:
    def share(tried: int) -> float:
        models = [NoisyOracle([FIX], success_rate=0.3, rise=0.2, seed=str(number)) for number in range(400)]
        return sum(is_true(ask_model(model, prompt((1, 3), tried=tried))) for model in models) / len(models)

    assert share(0) == pytest.approx(0.3, abs=0.07)
    assert share(2) == pytest.approx(0.7, abs=0.07)
    oracle = NoisyOracle([FIX], success_rate=0.5, seed="x")
    assert ask_model(oracle, prompt((1, 3))) == ask_model(oracle, prompt((1, 3)))


def test_lesson_sensitive_model_needs_the_fact() -> None:
    model = LessonSensitive([FIX], "cents, not dollars")
    assert not is_true(ask_model(model, prompt((1, 40))))
    assert is_true(ask_model(model, prompt((1, 2)) + wrap_untrusted("memory c1", "prices are cents, not dollars")))
    with pytest.raises(ValueError, match="empty"):
        LessonSensitive([FIX], " ")


def test_attacker_tries_each_attack_and_records_what_it_sees() -> None:
    model = ObedientAttacker([Way("one", "print(1)\n"), Way("two", "print(2)\n")], [FOUND, "secret"])
    snippets: list[str] = []
    for number in range(2):
        probe_results = "\n".join(
            wrap_untrusted(f"probe of attempt {item}", "nothing") for item in range(1, number + 1)
        )
        probe_request = find_probe(ask_model(model, prompt((1, 9)) + "\n" + probe_results))
        assert probe_request is not None
        snippets.append(probe_request.probe.snippet.strip())
    assert (snippets, model.tried, model.seen) == (["print(1)", "print(2)"], ["one", "two"], [])
    leaked_results = "\n".join(wrap_untrusted(f"probe of attempt {item}", "peeked at a secret") for item in (1, 2))
    assert parse(ask_model(model, prompt((1, 9)) + "\n" + leaked_results)).edits
    assert model.seen == [FOUND, "secret"]


def test_attack_snippet_contains_neither_the_marker_nor_the_find() -> None:
    for way in list_techniques("the_mark"):
        assert "the_mark" not in way.snippet
        assert FOUND not in way.snippet
        compile(way.snippet, way.name, "exec")


def test_other_questions_have_short_answers() -> None:
    model = OracleAtRecall([FIX])
    assert all(ask_model(model, "", question).startswith("{") for question in ("plan", "remember", "reflect"))
