"""What a strategy changes: the code shown, the model asked, the form requested, or the draft."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.core.change import ApplyResult, EditKind, Patch
from redstart.core.chat import Ask
from redstart.core.context import Context
from redstart.core.course import AttemptOutcome, CourseChange, CoursePattern, StallLimits, Strategy
from redstart.core.report import Ids, PatchTestResult, ReproductionResult, Verdict
from redstart.core.run import Action, Attempt, AttemptSummary, Decision, Limits, Mode, RunState, Step
from redstart.core.wishes import QuestionOptions
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.flow.route import settle
from redstart.testing.states import report, snapshot, spec, state
from redstart.toolkit.learning.stuck import chosen, is_open, seen, trend, turn
from redstart.toolkit.patching.reading.formats import LONGEST_WHOLE, best_form
from support import rig as play
from support.rig import Rig, make_rig

PLAN = '{"summary": "look elsewhere", "subtasks": []}'
MANY = 40


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


def wrong(number: int) -> str:
    return play.block("    return number + number + 1", f"    return number + number + {number + 10}")


def ran(rig: Rig, limits: Limits, asks: QuestionOptions, more: dict[str, bytes | None] | None = None):
    """Run without ever passing, with different edits each time; return the state, decisions, contexts and questions."""

    def reply(ask: Ask) -> str:
        plain = {"plan": PLAN, "remember": play.CARD}
        return plain.get(ask.question) or wrong(int(ask.site.partition("/")[0]))

    model = rig.with_model(reply)

    async def go() -> tuple[RunState, list[Decision], list[Context]]:
        claim = await rig.adapters.store.claim(await rig.begin(limits=limits, asks=asks))
        base = rig.trees.write(claim.state.base, more or {})
        own = {"base": base, "spec": claim.state.spec.model_copy(update={"base": base})}
        done = await drive(rig.adapters, claim._replace(state=claim.state.model_copy(update=own)), inline)
        rows = await rig.adapters.store.steps(done.state.run_id)
        decided = [Decision.model_validate_json(row.artifact) for row in rows if row.step is Step.decide]
        shown = [Context.model_validate_json(row.artifact) for row in rows if row.step is Step.retrieve]
        return done.state, decided, shown

    return *asyncio.run(go()), [ask for ask in model.asks if ask.question == "patch"]


@pytest.mark.slow
def test_more_of_the_code_is_shown_where_other_edits_end_in_the_same_failure(rig):
    text = "\n".join(f"def helper_{number}(double):\n    return double + {number}\n" for number in range(60))
    more = {f"double_{number}.py": text.encode() for number in range(MANY)}
    _, decided, shown, asks = ran(rig, Limits(attempts=4), QuestionOptions(), more)
    first, second = decided[0].turn, decided[1].turn
    assert first is None
    assert second == CourseChange(pattern=CoursePattern.same_signature, strategy=Strategy.wider, attempts=(1, 2))
    assert (decided[1].next, decided[1].reason) == (
        Step.retrieve,
        "attempts 1 and 2 ended in the same failure: showing more of the code",
    )
    size = [sum(chunk.end - chunk.start + 1 for chunk in context.chunks) for context in shown]
    assert size[0] == size[1] > 0
    assert size[2] > 1.5 * size[1]
    assert [len(ask.messages[-1].text) > 1.5 * len(asks[0].messages[-1].text) for ask in asks[:3]] == [
        False,
        False,
        True,
    ]


def test_the_strong_model_writes_where_a_test_stays_red_and_another_wrote():
    before = tuple(AttemptSummary(number=number, fingerprint=f"f{number}", seen=seen_as(number)) for number in (1, 2))
    run = red_run(3, before, asks=QuestionOptions(stronger="big:one"))
    found = turn(run)
    assert found is not None
    assert (found.pattern, found.strategy) == (CoursePattern.same_test, Strategy.stronger)
    assert not is_open(red_run(3, before, asks=QuestionOptions()), Strategy.stronger)
    assert not is_open(red_run(3, before, asks=QuestionOptions(stronger="small:one")), Strategy.stronger)


def seen_as(number: int, **over) -> AttemptOutcome:
    plain = {"base": "a" * 40, "tree": f"t{number}", "failing": "x", "signature": f"s{number}", "tests": ("m",)}
    return AttemptOutcome.model_validate({**plain, "wrong": 1, "model": "small:one", **over})


def red_run(
    number: int, history: tuple[AttemptSummary, ...], *, asks: QuestionOptions | None = None, **over
) -> RunState:
    """Build a run whose current attempt by `small:one` fails test `a`; `history` holds the earlier attempts."""
    now = Attempt(
        number=number,
        entry=Step.patch,
        reproduce=ReproductionResult(report=report(["a"]), targets=Ids.of(["a"])),
        patch=Patch(edits="e", fingerprint=f"f{number}", model="small:one"),
        apply=ApplyResult(ok=True, snapshot=snapshot(tree="c" * 40)),
        test=PatchTestResult(report=report(["a"]), verdict=Verdict(still_red=Ids.of(["a"]))),
    )
    mark = seen(state(now=now)).tests
    marked = tuple(
        item.model_copy(update={"seen": item.seen.model_copy(update={"tests": mark})}) if item.seen.tests else item
        for item in history
    )
    limits = over.pop("limits", Limits(attempts=99))
    asked = spec(asks=asks or QuestionOptions(), limits=limits, mode=over.pop("mode", Mode.fix))
    return state(spec=asked, now=now, history=marked, **over)


@pytest.mark.slow
def test_once_stronger_every_question_says_so(rig):
    asks = QuestionOptions(stronger="big:one", stalls={play.WRITER: StallLimits(warning=1, end=2)})
    _, decided, _, asked = ran(rig, Limits(attempts=4), asks)
    assert decided[0].warning == (
        f"1 attempt of {play.WRITER} in a row brought nothing; "
        "1 more such attempt, and another model writes, or the run ends"
    )
    assert decided[1].turn is not None
    assert (decided[1].turn.pattern, decided[1].turn.strategy) == (CoursePattern.exhausted, Strategy.stronger)
    assert [ask.stuck for ask in asked] == [False, False, True]
    # The same model answers here even so: it has reached its stall limit, and no other model is left.
    assert (decided[2].result, decided[2].reason) == (
        "stuck",
        f"3 attempts of {play.WRITER} in a row brought nothing",
    )


@pytest.mark.slow
def test_a_run_that_brings_nothing_is_warned_of_and_ended(rig):
    limits = Limits(attempts=99, stall_warning=3, stall=5, tokens=None, usd=None)
    ended, decided, _, _ = ran(rig, limits, QuestionOptions())
    assert (ended.result, ended.reason) == ("stuck", "5 attempts in a row brought nothing")
    assert [item.warning for item in decided] == [
        "",
        "",
        "3 attempts in a row brought nothing; 2 more such attempts, and the run ends",
        "4 attempts in a row brought nothing; 1 more such attempt, and the run ends",
        "",
    ]
    assert (Limits().stall_warning, Limits().stall) == (12, 15)
    told = [event.data["warning"] for event in rig.events if event.name == "decide" and event.data.get("warning")]
    assert told == [decided[2].warning, decided[3].warning]


@pytest.mark.slow
def test_a_form_that_did_not_fit_is_given_up_for_whole_files(rig):
    model = rig.with_model(
        lambda ask: (
            PLAN if ask.question == "plan" else play.block(f"    return line {ask.site} that is not there", "    pass")
        )
    )

    async def go() -> RunState:
        claim = await rig.adapters.store.claim(await rig.begin(limits=Limits(attempts=6)))
        return (await drive(rig.adapters, claim, inline)).state

    ended = asyncio.run(go())
    forms = [entry.seen.form for entry in ended.history]
    assert forms == [EditKind.block, EditKind.block, EditKind.whole, EditKind.whole, EditKind.whole]
    taken = [entry.turn.strategy.value if entry.turn else "" for entry in ended.history]
    assert taken == ["", "form", "hypothesis", "plan", "hypothesis"]
    assert "Give it as a whole" in str(next(ask for ask in model.asks if ask.site.startswith("3/patch")).messages)


@pytest.mark.parametrize(("pattern", "draft"), [(CoursePattern.regress, "d" * 40), (CoursePattern.oscillation, None)])
def test_a_new_program_goes_back_to_what_it_was(pattern, draft):
    before = snapshot(tree="d" * 40)
    run = red_run(2, (AttemptSummary(number=1),), mode=Mode.create, draft=before)
    turned = CourseChange(pattern=pattern, strategy=Strategy.restart, attempts=(1, 2))
    again = Decision(action=Action.retry, reason="worse", next=Step.retrieve, turn=turned)
    done = settle(run.model_copy(update={"last": Step.remember}), Step.decide, again)
    assert (done.draft.tree if done.draft else None) == draft
    plain = settle(run, Step.decide, again.model_copy(update={"turn": None}))
    assert plain.draft is not None
    assert plain.draft.tree == "c" * 40


def test_tests_that_are_unsteady_on_the_same_code_are_no_circle():
    same = seen_as(1, tree="c" * 40, failing="other")
    assert turn(red_run(2, (AttemptSummary(number=1, fingerprint="other", seen=same),))) is None


def test_what_was_measured_against_other_tests_is_not_compared():
    old = tuple(AttemptSummary(number=n, seen=seen_as(n, base="elsewhere")) for n in (1, 2, 3))
    assert turn(red_run(4, old)) is None
    assert trend(red_run(4, old)) == "stable"


def test_what_was_taken_least_comes_first():
    used = CourseChange(pattern=CoursePattern.no_progress, strategy=Strategy.hypothesis)
    run = red_run(2, (AttemptSummary(number=1, turn=used),))
    assert chosen(run, CoursePattern.no_progress) is Strategy.plan
    assert chosen(red_run(1, ()), CoursePattern.no_progress) is Strategy.hypothesis


@pytest.mark.parametrize(("longest", "form"), [(1, EditKind.whole), (LONGEST_WHOLE + 1, EditKind.envelope)])
def test_the_likeliest_of_the_other_forms_is_asked_for(longest, form):
    assert best_form({}, longest, without=[EditKind.block]) is form
    assert best_form({}, longest, without=list(EditKind)) is EditKind.block


@pytest.mark.soak
def test_a_small_model_is_shown_a_second_passage_and_a_plan_only_when_that_is_what_is_tried_next(rig):
    more: dict[str, bytes | None] = {"double.py": b"def double(number):\n    return number\n"}
    _, decided, _, asks = ran(rig, Limits(attempts=5), QuestionOptions(brief=True), more)
    assert [item.turn.strategy.value if item.turn else "" for item in decided[:4]] == [
        "",
        "wider",
        "hypothesis",
        "plan",
    ]
    assert ["double.py lines" in ask.messages[1].text for ask in asks] == [False, False, True, True, True]
    assert ["look elsewhere" in ask.messages[1].text for ask in asks] == [False, False, False, False, True]
    assert [ask.temperature for ask in asks] == [0.0, 0.6, 0.6, 0.6, 0.6]
