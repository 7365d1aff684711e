"""Whole runs, scripted attempt by attempt: which pattern is detected at which attempt. A good run shows none.

A script names the outcome of each attempt's patch. `a.key b.type` lists the failing tests and how they fail; `green`
means that none fails. `-` stands for edits that do not fit, `?` for an answer without edits, `!` for a syntax error,
`N` for a misspelled name and `T` for a change of a test. `=2` repeats the patch of attempt 2; `~2` is another patch
that produces the same code.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

import pytest

from redstart.core.chat import Ask
from redstart.core.progress import CoursePattern, Strategy
from redstart.core.run import Attempt, Decision, Limits, RunSpec, RunState, Step
from redstart.core.shell import Completed, Execution, ExitCause
from redstart.engines.inline import run_inline
from redstart.engines.replay import replay
from redstart.engines.step_driver import drive
from support import rig as play
from support.rig import Rig, make_rig
from support.sample import sample_parameters

FAILURES = {
    "key": "KeyError: 'price'",
    "type": "TypeError: cannot add",
    "wrong": "AssertionError: the sum is wrong",
    "value": "ValueError: no such rate",
    "name": "NameError: name 'rate' is not defined",
}
LINE = "    return number + number + 1"
PLAN = '{"summary": "look elsewhere", "subtasks": []}'


def build_suite(rig: Rig, start: str, leads_to: dict[str, str]):
    """Build a suite whose failing tests (of four) come from the script; the key is the value that the code returns."""

    def run(execution: Execution) -> Completed:
        code = (rig.trees.read(execution.snapshot, play.CODE) or b"").decode()
        match = re.search(r"return number \+ (\d+)", code)
        failures = dict(part.split(".") for part in (leads_to[match[1]] if match else start).split() if part != "green")
        cases = "".join(
            f'<testcase classname="test_calc" name="test_{name}" file="{play.TESTS}" time="0.01">'
            + (
                f"<failure message={quoteattr(FAILURES[failures[name]])}>{play.TESTS}:5: Error</failure>"
                if name in failures
                else ""
            )
            + "</testcase>"
            for name in "abcd"
        )
        xml = f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{cases}</testsuite></testsuites>'
        cause = ExitCause.failed if failures else ExitCause.ok
        return Completed(exit_code=int(bool(failures)), cause=cause, output="", files={"junit.xml": xml}, wall=0.01)

    return run


def answer(attempt: int, outcome: str) -> str:
    is_repeat = outcome.startswith("=")
    number = int(outcome[1:]) if outcome[0] in "=~" else attempt
    special_answers = {
        "-": play.block(f"    return line {number} that is not there", "    pass"),
        "?": f"I cannot say, for the {number}. time.",
        "!": play.block(LINE, f"    return (number + {number}"),
        "N": play.block(LINE, f"    return numbr + {number}"),
        "T": play.block("    assert double(2) == 4", f"    assert {number}", play.TESTS),
    }
    if outcome in special_answers:
        return special_answers[outcome]
    head = "def double(number):\n"
    if outcome.startswith("~"):
        return play.block(f"{head}{LINE}", f"{head}    return number + {number}")
    return play.block(LINE, f"    return number + {number}") if not is_repeat else ""


def run_script(rig: Rig, start: str, script: list[str]) -> tuple[RunState, list[Decision], list[Ask]]:
    """Run to the end; return the final state, the decision after each attempt, and the questions."""
    texts = [answer(number, outcome) for number, outcome in enumerate(script, 1)]
    for place, outcome in enumerate(script):
        if outcome.startswith("="):
            texts[place] = texts[int(outcome[1:]) - 1]
    rig = rig.twin()
    leads_to = {str(number): outcome for number, outcome in enumerate(script, 1)}
    rig.with_suite(build_suite(rig, start, leads_to))

    def reply(ask: Ask) -> str:
        canned_answers = {"plan": PLAN, "remember": play.CARD}
        return canned_answers.get(ask.question) or texts[min(int(ask.site.partition("/")[0]), len(texts)) - 1]

    model = rig.with_model(reply)

    async def go() -> tuple[RunState, list[Decision]]:
        limits = Limits(attempts=len(script), tokens=None, usd=None)
        claim = await rig.adapters.store.claim(await rig.begin(limits=limits))
        result = await drive(rig.adapters, claim, run_inline)
        rows = await rig.adapters.store.list_steps(result.state.run_id)
        assert (await replay(rig.adapters, result.state.run_id)).state == result.state
        return result.state, [Decision.model_validate_json(row.artifact) for row in rows if row.step is Step.decide]

    return *asyncio.run(go()), model.questions


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path_factory.mktemp("rig") / "snapshots")
    yield test_rig
    test_rig.trees.close()


A, AB, ABC = "a.wrong", "a.wrong b.wrong", "a.wrong b.wrong c.wrong"
ABCD = f"{ABC} d.wrong"

CIRCLES: list[tuple[CoursePattern, int, str, list[str]]] = [
    (CoursePattern.same_signature, 2, A, ["a.key", "a.key"]),
    (CoursePattern.same_signature, 2, A, ["a.wrong", "a.wrong"]),
    (CoursePattern.same_signature, 2, AB, ["a.key b.wrong", "a.key b.wrong"]),
    (CoursePattern.same_signature, 2, ABC, ["a.wrong b.wrong", "a.wrong b.wrong"]),
    (CoursePattern.same_signature, 3, A, ["a.key", "-", "a.key"]),
    (CoursePattern.same_signature, 3, A, ["a.key", "a.type", "a.type"]),
    (CoursePattern.same_test, 3, A, ["a.key", "a.type", "a.value"]),
    (CoursePattern.same_test, 3, AB, ["a.key", "a.type", "a.value"]),
    (CoursePattern.same_test, 3, AB, ["a.key c.key", "a.type d.key", "a.value b.key"]),
    (CoursePattern.no_progress, 3, A, ["a.key", "!", "a.type"]),
    (CoursePattern.no_progress, 3, A, ["!", "T", "a.key"]),
    (CoursePattern.no_progress, 3, A, ["N", "N", "N"]),
    (CoursePattern.no_progress, 3, AB, ["a.key c.key", "b.key d.key", "c.type d.type"]),
    (CoursePattern.no_progress, 4, ABC, ["a.key", "b.key", "c.key", "d.key"]),
    (CoursePattern.oscillation, 3, AB, ["a.key", "b.key", "a.key"]),
    (CoursePattern.oscillation, 3, A, ["b.key", "c.key", "b.type"]),
    (CoursePattern.oscillation, 3, A, ["a.key", "a.type", "=1"]),
    (CoursePattern.oscillation, 3, A, ["a.key", "a.type", "~1"]),
    (CoursePattern.oscillation, 3, ABC, ["a.key b.key", "b.type c.key", "a.type b.value"]),
    (CoursePattern.oscillation, 4, AB, ["a.key", "-", "b.key", "a.type"]),
    (CoursePattern.revisited, 2, A, ["a.key", "=1"]),
    (CoursePattern.revisited, 2, A, ["a.key", "~1"]),
    (CoursePattern.revisited, 2, A, ["N", "=1"]),
    (CoursePattern.revisited, 2, A, ["T", "=1"]),
    (CoursePattern.revisited, 4, ABC, ["a.key b.key", "a.key", "b.key", "=1"]),
    (CoursePattern.regress, 1, A, ["a.wrong b.key"]),
    (CoursePattern.regress, 1, A, ["b.key c.key"]),
    (CoursePattern.regress, 2, AB, ["a.key", "a.key c.key"]),
    (CoursePattern.regress, 3, A, ["a.key", "-", "a.key b.key"]),
    (CoursePattern.unfit, 2, A, ["-", "-"]),
    (CoursePattern.unfit, 2, A, ["?", "-"]),
    (CoursePattern.unfit, 2, A, ["!", "!"]),
    (CoursePattern.unfit, 3, A, ["-", "a.key", "?"]),
]

ON_THEIR_WAY: list[tuple[str, list[str]]] = [
    (A, []),
    (A, ["a.key"]),
    (A, ["a.wrong"]),
    (A, ["-"]),
    (A, ["?"]),
    (A, ["!"]),
    (A, ["T"]),
    (A, ["N"]),
    (ABC, ["-", "a.key b.key", "?", "a.type"]),
    (A, ["b.key"]),
    (A, ["-", "a.key"]),
    (A, ["a.key", "-"]),
    (A, ["a.key", "!"]),
    (A, ["!", "a.key"]),
    (A, ["a.key", "a.type"]),
    (A, ["a.wrong", "a.key"]),
    (A, ["b.key", "c.key"]),
    (AB, ["a.wrong"]),
    (AB, ["b.wrong", "!"]),
    (AB, ["a.key", "b.key"]),
    (AB, ["a.key c.key", "b.key"]),
    (AB, ["?", "a.key"]),
    (AB, ["a.wrong b.key", "a.key"]),
    (ABC, ["a.wrong b.wrong", "a.wrong"]),
    (ABC, ["a.key b.key", "b.type c.key"]),
    (ABC, ["a.key b.key", "a.type b.key", "a.value"]),
    (ABC, ["a.wrong b.wrong", "T", "a.wrong"]),
    (ABCD, ["a.wrong b.wrong c.wrong", "a.wrong b.wrong", "a.wrong"]),
    (ABCD, ["a.wrong b.wrong c.wrong", "a.wrong b.wrong", "-", "a.wrong"]),
    (ABCD, ["a.wrong b.wrong c.wrong", "-", "a.wrong b.wrong", "!", "a.wrong"]),
    (ABCD, ["a.key b.key", "c.key d.key", "a.key"]),
    (ABCD, ["a.key b.key", "a.type b.key", "b.value", "c.key"]),
]


def test_at_least_thirty_scripts_of_each_kind_exist() -> None:
    assert len(CIRCLES) >= 30
    assert len(ON_THEIR_WAY) >= 30


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "expected_attempt", "start", "script"),
    sample_parameters([pytest.param(*circle) for circle in CIRCLES], 11),
)
def test_pattern_is_detected_at_the_first_attempt_that_shows_it(rig, pattern, expected_attempt, start, script):
    final_state, all_decisions, _ = run_script(rig, start, [*script, "green"])
    assert final_state.result == "verified"
    turns = [(number, item.turn.pattern) for number, item in enumerate(all_decisions, 1) if item.turn]
    assert turns == [(expected_attempt, pattern)]
    decision = all_decisions[expected_attempt - 1]
    assert decision.turn is not None
    assert decision.turn.attempts[-1:] == (expected_attempt,)
    assert final_state.history[expected_attempt - 1].turn == decision.turn


@pytest.mark.slow
@pytest.mark.parametrize(("start", "script"), sample_parameters([pytest.param(*item) for item in ON_THEIR_WAY], 8))
def test_run_making_progress_is_left_alone(rig, start, script):
    final_state, all_decisions, _ = run_script(rig, start, [*script, "green"])
    assert final_state.result == "verified"
    assert [item.turn for item in all_decisions] == [None] * (len(script) + 1)


@pytest.mark.slow
def test_each_pattern_gets_its_own_strategy(rig):
    first_scripts = {pattern: (start, script) for pattern, _, start, script in reversed(CIRCLES)}
    strategies = {
        pattern: run_script(rig, start, [*script, "green"])[1][len(script) - 1].turn.strategy
        for pattern, (start, script) in first_scripts.items()
    }
    # The rig's only file is already shown, and it has one model, so neither wider nor stronger is possible.
    assert strategies == {
        CoursePattern.unfit: Strategy.form,
        CoursePattern.revisited: Strategy.plan,
        CoursePattern.oscillation: Strategy.both,
        CoursePattern.regress: Strategy.restart,
        CoursePattern.same_signature: Strategy.hypothesis,
        CoursePattern.same_test: Strategy.hypothesis,
        CoursePattern.no_progress: Strategy.hypothesis,
    }


@pytest.mark.slow
def test_unsuccessful_strategy_is_followed_by_another(rig):
    final_state, all_decisions, asks = run_script(rig, A, ["a.key", "a.key", "a.key", "a.key", "green"])
    assert [item.turn.strategy.value if item.turn else "" for item in all_decisions] == [
        "",
        "hypothesis",
        "plan",
        "hypothesis",
        "",
    ]
    assert final_state.result == "verified"
    assert [ask.question for ask in asks].count("plan") == 1
    assert [ask.temperature for ask in asks if ask.question == "patch"] == [0.0, 0.6, 0.9, 0.9, 0.9]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "script", "trend"),
    [
        (AB, ["a.key"], "improving"),
        (A, ["a.key"], "stable"),
        (A, ["a.key b.key"], "regressing"),
        (AB, ["a.key", "a.key c.key"], "mixed"),
        (A, ["-"], None),
    ],
)
def test_decision_includes_the_trend(rig, start, script, trend):
    _, all_decisions, _ = run_script(rig, start, [*script, "green"])
    assert all_decisions[len(script) - 1].trend == trend
    assert all_decisions[-1].trend is None


def get_patch_prompt(asks: list[Ask], attempt: int) -> str:
    """Return the text of the first question for edits in the attempt."""
    patch_asks = [ask for ask in asks if ask.question == "patch" and ask.site.startswith(f"{attempt}/")]
    return "\n".join(message.text for message in patch_asks[0].messages)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "script", "phrase"),
    [
        (A, ["a.key", "a.key"], "What was tried does not lead there"),
        (AB, ["a.key", "b.key", "a.key"], "Attempts 1, 2, 3 failed in two ways by turns"),
        (A, ["a.key b.key"], "The last edits made it worse"),
        (A, ["a.key", "=1"], "Follow the plan to others"),
        (A, ["-", "-"], "all of the file as it shall be"),
    ],
)
def test_strategy_changes_the_next_prompt(rig, start, script, phrase):
    _, _, asks = run_script(rig, start, [*script, "green"])
    assert phrase in get_patch_prompt(asks, len(script) + 1)
    assert not any(phrase in get_patch_prompt(asks, number) for number in range(1, len(script) + 1))


@pytest.mark.slow
def test_restart_prompt_shows_the_edits_that_made_it_worse(rig):
    _, _, asks = run_script(rig, A, ["a.key b.key", "green"])
    assert "return number + 1\n" in get_patch_prompt(asks, 2)
    assert "KeyError" in get_patch_prompt(asks, 2)
    assert "The last edits made it worse" in get_patch_prompt(asks, 2)
    _, _, asks = run_script(rig, A, ["a.key", "green"])
    assert "The last edits made it worse" not in get_patch_prompt(asks, 2)


def test_run_of_an_earlier_version_can_be_read() -> None:
    state = RunState(
        run_id="r",
        spec=RunSpec.model_validate(
            {"mode": "fix", "base": {"tree": "t", "base": "t", "pack": "p"}, "suite": {"runner": "pytest"}}
        ),
        base={"tree": "t", "base": "t", "pack": "p"},
        now=Attempt(entry=Step.patch),
        history=({"number": 1, "fingerprint": "f", "red": 1, "signature": "s"},),
    )
    old = state.model_dump(mode="json")
    for field in ("seen", "turn"):
        del old["history"][0][field]
    for field in ("stall", "stall_warning"):
        del old["spec"]["limits"][field]
    for field in ("stronger", "stalls"):
        del old["spec"]["asks"][field]
    assert RunState.model_validate(old) == state
    assert Decision.model_validate({"action": "retry", "reason": "still red"}).turn is None
