"""What a strategy changes: the code shown, the model asked, the form requested, or the draft."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.core.change import ApplyResult, EditKind, Patch
from redstart.core.chat import Ask
from redstart.core.context import Context
from redstart.core.progress import AttemptOutcome, CourseChange, CoursePattern, StallLimits, Strategy
from redstart.core.report import Ids, PatchTestResult, ReproductionResult, Verdict
from redstart.core.run import Action, Attempt, AttemptSummary, Decision, Limits, Mode, RunState, Step
from redstart.core.run_preferences import QuestionOptions
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from redstart.flow.route import settle
from redstart.testing.states import make_snapshot, make_spec, make_state, report
from redstart.toolkit.learning.stuck_runs import choose_strategy, compute_outcome, compute_trend, is_open, turn
from redstart.toolkit.patching.reading.formats import LONGEST_WHOLE, choose_form
from support import rig as play
from support.rig import Rig, make_rig

PLAN = '{"summary": "look elsewhere", "subtasks": []}'
MANY = 40


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")
    yield test_rig
    test_rig.trees.close()


def build_wrong_patch(number: int) -> str:
    return play.block("    return number + number + 1", f"    return number + number + {number + 10}")


def run_to_end(rig: Rig, limits: Limits, asks: QuestionOptions, extra_files: dict[str, bytes | None] | None = None):
    """Run without ever passing, with different edits each time; return the state, decisions, contexts and questions."""

    def reply(ask: Ask) -> str:
        canned_answers = {"plan": PLAN, "remember": play.CARD}
        return canned_answers.get(ask.question) or build_wrong_patch(int(ask.site.partition("/")[0]))

    model = rig.with_model(reply)

    async def go() -> tuple[RunState, list[Decision], list[Context]]:
        claim = await rig.adapters.store.claim(await rig.begin(limits=limits, asks=asks))
        base = rig.trees.write(claim.state.base, extra_files or {})
        changes = {"base": base, "spec": claim.state.spec.model_copy(update={"base": base})}
        result = await drive(rig.adapters, claim._replace(state=claim.state.model_copy(update=changes)), run_inline)
        rows = await rig.adapters.store.list_steps(result.state.run_id)
        decisions = [Decision.model_validate_json(row.artifact) for row in rows if row.step is Step.decide]
        contexts = [Context.model_validate_json(row.artifact) for row in rows if row.step is Step.retrieve]
        return result.state, decisions, contexts

    return *asyncio.run(go()), [ask for ask in model.questions if ask.question == "patch"]


@pytest.mark.slow
def test_more_code_is_shown_when_different_edits_end_in_the_same_failure(rig):
    text = "\n".join(f"def helper_{number}(double):\n    return double + {number}\n" for number in range(60))
    extra_files = {f"double_{number}.py": text.encode() for number in range(MANY)}
    _, decisions, contexts, asks = run_to_end(rig, Limits(attempts=4), QuestionOptions(), extra_files)
    first_turn, second_turn = decisions[0].turn, decisions[1].turn
    assert first_turn is None
    assert second_turn == CourseChange(pattern=CoursePattern.same_signature, strategy=Strategy.wider, attempts=(1, 2))
    assert (decisions[1].next, decisions[1].reason) == (
        Step.retrieve,
        "attempts 1 and 2 ended in the same failure: showing more of the code",
    )
    size = [sum(chunk.end - chunk.start + 1 for chunk in context.chunks) for context in contexts]
    assert size[0] == size[1] > 0
    assert size[2] > 1.5 * size[1]
    assert [len(ask.messages[-1].text) > 1.5 * len(asks[0].messages[-1].text) for ask in asks[:3]] == [
        False,
        False,
        True,
    ]


def test_stronger_model_takes_over_when_a_test_keeps_failing():
    summaries = tuple(
        AttemptSummary(number=number, fingerprint=f"f{number}", seen=build_outcome(number)) for number in (1, 2)
    )
    run = build_failing_run(3, summaries, asks=QuestionOptions(stronger="big:one"))
    course_change = turn(run)
    assert course_change is not None
    assert (course_change.pattern, course_change.strategy) == (CoursePattern.same_test, Strategy.stronger)
    assert not is_open(build_failing_run(3, summaries, asks=QuestionOptions()), Strategy.stronger)
    assert not is_open(build_failing_run(3, summaries, asks=QuestionOptions(stronger="small:one")), Strategy.stronger)


def build_outcome(number: int, **overrides) -> AttemptOutcome:
    defaults = {"base": "a" * 40, "tree": f"t{number}", "failing": "x", "signature": f"s{number}", "tests": ("m",)}
    return AttemptOutcome.model_validate({**defaults, "wrong": 1, "model": "small:one", **overrides})


def build_failing_run(
    number: int, history: tuple[AttemptSummary, ...], *, asks: QuestionOptions | None = None, **overrides
) -> RunState:
    """Build a run whose current attempt by `small:one` fails test `a`; `history` holds the earlier attempts."""
    attempt = Attempt(
        number=number,
        entry=Step.patch,
        reproduce=ReproductionResult(report=report(["a"]), targets=Ids.from_ids(["a"])),
        patch=Patch(edits="e", fingerprint=f"f{number}", model="small:one"),
        apply=ApplyResult(ok=True, snapshot=make_snapshot(tree="c" * 40)),
        test=PatchTestResult(report=report(["a"]), verdict=Verdict(still_red=Ids.from_ids(["a"]))),
    )
    mark = compute_outcome(make_state(now=attempt)).tests
    summaries = tuple(
        item.model_copy(update={"seen": item.seen.model_copy(update={"tests": mark})}) if item.seen.tests else item
        for item in history
    )
    limits = overrides.pop("limits", Limits(attempts=99))
    run_spec = make_spec(asks=asks or QuestionOptions(), limits=limits, mode=overrides.pop("mode", Mode.fix))
    return make_state(spec=run_spec, now=attempt, history=summaries, **overrides)


@pytest.mark.slow
def test_prompts_go_to_the_stronger_model_after_escalation(rig):
    asks = QuestionOptions(stronger="big:one", stalls={play.WRITER: StallLimits(warning=1, end=2)})
    _, decisions, _, patch_asks = run_to_end(rig, Limits(attempts=4), asks)
    assert decisions[0].warning == (
        f"1 attempt of {play.WRITER} in a row brought nothing; "
        "1 more such attempt, and another model writes, or the run ends"
    )
    assert decisions[1].turn is not None
    assert (decisions[1].turn.pattern, decisions[1].turn.strategy) == (CoursePattern.exhausted, Strategy.stronger)
    assert [ask.stuck for ask in patch_asks] == [False, False, True]
    # The same model answers here even so: it has reached its stall limit, and no other model is left.
    assert (decisions[2].result, decisions[2].reason) == (
        "stuck",
        f"3 attempts of {play.WRITER} in a row brought nothing",
    )


@pytest.mark.slow
def test_run_without_progress_is_warned_and_then_ended(rig):
    limits = Limits(attempts=99, stall_warning=3, stall=5, tokens=None, usd=None)
    final_state, decisions, _, _ = run_to_end(rig, limits, QuestionOptions())
    assert (final_state.result, final_state.reason) == ("stuck", "5 attempts in a row brought nothing")
    assert [item.warning for item in decisions] == [
        "",
        "",
        "3 attempts in a row brought nothing; 2 more such attempts, and the run ends",
        "4 attempts in a row brought nothing; 1 more such attempt, and the run ends",
        "",
    ]
    assert (Limits().stall_warning, Limits().stall) == (12, 15)
    warnings = [event.data["warning"] for event in rig.events if event.name == "decide" and event.data.get("warning")]
    assert warnings == [decisions[2].warning, decisions[3].warning]


@pytest.mark.slow
def test_edit_form_that_did_not_fit_is_replaced_by_whole_files(rig):
    model = rig.with_model(
        lambda ask: (
            PLAN if ask.question == "plan" else play.block(f"    return line {ask.site} that is not there", "    pass")
        )
    )

    async def go() -> RunState:
        claim = await rig.adapters.store.claim(await rig.begin(limits=Limits(attempts=6)))
        return (await drive(rig.adapters, claim, run_inline)).state

    final_state = asyncio.run(go())
    forms = [entry.seen.form for entry in final_state.history]
    assert forms == [EditKind.block, EditKind.block, EditKind.whole, EditKind.whole, EditKind.whole]
    strategies = [entry.turn.strategy.value if entry.turn else "" for entry in final_state.history]
    assert strategies == ["", "form", "hypothesis", "plan", "hypothesis"]
    assert "Give it as a whole" in str(next(ask for ask in model.questions if ask.site.startswith("3/patch")).messages)


@pytest.mark.parametrize(("pattern", "draft"), [(CoursePattern.regress, "d" * 40), (CoursePattern.oscillation, None)])
def test_new_program_returns_to_its_earlier_draft(pattern, draft):
    earlier_draft = make_snapshot(tree="d" * 40)
    run = build_failing_run(2, (AttemptSummary(number=1),), mode=Mode.create, draft=earlier_draft)
    course_change = CourseChange(pattern=pattern, strategy=Strategy.restart, attempts=(1, 2))
    retry_decision = Decision(action=Action.retry, reason="worse", next=Step.retrieve, turn=course_change)
    next_state = settle(run.model_copy(update={"last": Step.remember}), Step.decide, retry_decision)
    assert (next_state.draft.tree if next_state.draft else None) == draft
    plain_state = settle(run, Step.decide, retry_decision.model_copy(update={"turn": None}))
    assert plain_state.draft is not None
    assert plain_state.draft.tree == "c" * 40


def test_flaky_tests_on_unchanged_code_are_not_a_pattern():
    outcome = build_outcome(1, tree="c" * 40, failing="other")
    assert turn(build_failing_run(2, (AttemptSummary(number=1, fingerprint="other", seen=outcome),))) is None


def test_results_against_different_tests_are_not_compared():
    old = tuple(AttemptSummary(number=n, seen=build_outcome(n, base="elsewhere")) for n in (1, 2, 3))
    assert turn(build_failing_run(4, old)) is None
    assert compute_trend(build_failing_run(4, old)) == "stable"


def test_least_used_strategy_comes_first():
    used = CourseChange(pattern=CoursePattern.no_progress, strategy=Strategy.hypothesis)
    run = build_failing_run(2, (AttemptSummary(number=1, turn=used),))
    assert choose_strategy(run, CoursePattern.no_progress) is Strategy.plan
    assert choose_strategy(build_failing_run(1, ()), CoursePattern.no_progress) is Strategy.hypothesis


@pytest.mark.parametrize(("longest", "form"), [(1, EditKind.whole), (LONGEST_WHOLE + 1, EditKind.envelope)])
def test_most_likely_of_the_remaining_forms_is_requested(longest, form):
    assert choose_form({}, longest, excluded=[EditKind.block]) is form
    assert choose_form({}, longest, excluded=list(EditKind)) is EditKind.block


@pytest.mark.soak
def test_small_model_sees_a_second_passage_and_a_plan_only_when_chosen(rig):
    extra_files: dict[str, bytes | None] = {"double.py": b"def double(number):\n    return number\n"}
    _, decisions, _, asks = run_to_end(rig, Limits(attempts=5), QuestionOptions(brief=True), extra_files)
    assert [item.turn.strategy.value if item.turn else "" for item in decisions[:4]] == [
        "",
        "wider",
        "hypothesis",
        "plan",
    ]
    assert ["double.py lines" in ask.messages[1].text for ask in asks] == [False, False, True, True, True]
    assert ["look elsewhere" in ask.messages[1].text for ask in asks] == [False, False, False, False, True]
    assert [ask.temperature for ask in asks] == [0.0, 0.6, 0.6, 0.6, 0.6]
