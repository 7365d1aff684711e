"""A proof reports how a run ended, and proving the run again gives the same proof."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from redstart.app.proof.evidence import journal_mark, prove
from redstart.app.proof.schema import CheckMark, CheckName, Proof
from redstart.app.proof.text import as_json, as_text
from redstart.app.settings import Settings
from redstart.app.wire import AppContext
from redstart.core.change import ApplyResult, EditFit, EditKind, EditRecord
from redstart.core.errors import ConfigError, StoreError
from redstart.core.finding import TRIPWIRE, Finding, FindingList, Severity
from redstart.core.report import Case, CaseList, Ids, Outcome, OutcomeCounts, Repeat
from redstart.core.run import Level, Limits, Result, RunState, Status, Step
from redstart.core.tasks import CreateTask
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.engines.journal import digest
from redstart.ports.store.port.journal import JournalRecord
from redstart.toolkit.repo.trees import GitTrees
from support import rig as play
from support.rig import Rig, make_rig

pytestmark = pytest.mark.slow

ONCE = Limits(attempts=1)


class Ended(NamedTuple):
    rig: Rig
    house: AppContext
    state: RunState

    def prove(self, **over: Any) -> Proof:
        """Prove the run with these values in its state."""
        return asyncio.run(prove(self.house, self.state.model_copy(update=over)))

    def records(self) -> list[JournalRecord]:
        return asyncio.run(self.rig.adapters.journal.records(self.state.run_id))

    def judged(self, **over: Any) -> RunState:
        """Return the state with these values in its verdict."""
        assert self.state.now.test
        verdict = self.state.now.test.verdict.model_copy(update=over)
        tested = self.state.now.test.model_copy(update={"verdict": verdict})
        return self.state.model_copy(update={"now": self.state.now.model_copy(update={"test": tested})})


@pytest.fixture
def ended(tmp_path: Path) -> Iterator[Callable[..., Ended]]:
    """Return a function that drives a run to its end with these answers."""
    rigs: list[Rig] = []

    def drive_it(*answers: str, until: Step | None = None, **asked: Any) -> Ended:
        rig = make_rig(tmp_path / f"snapshots-{len(rigs)}")
        rigs.append(rig)
        rig.with_model([*answers, play.CARD])

        async def go() -> RunState:
            claim = await rig.adapters.store.claim(await rig.begin(**{"verify": Level.standard, **asked}))
            return (await drive(rig.adapters, claim, inline, until)).state

        return Ended(rig, AppContext(Settings(home=tmp_path), rig.adapters, rig.trees), asyncio.run(go()))

    yield drive_it
    for rig in rigs:
        rig.trees.close()


def marks(proof: Proof) -> dict[str, str]:
    assert [check.name for check in proof.checks] == list(CheckName)
    return {check.name.value: check.mark.value for check in proof.checks}


def said(proof: Proof, name: str) -> str:
    return next(check.said for check in proof.checks if check.name == name)


def test_a_verified_run_shows_what_was_checked_with_its_figures(ended):
    run = ended(play.WRONG, play.RIGHT)
    proof = run.prove()
    assert (proof.verified, proof.by_person, proof.result, proof.lacking) == (True, False, Result.verified, ())
    assert proof.sentence == (
        "Verified: 1 test that failed without this patch passes with it; no other test got worse."
    )
    assert set(marks(proof).values()) == {CheckMark.passed.value}
    assert said(proof, "able_to_fail") == "1 of 1 failed when altered, 4 runs"
    assert said(proof, "neutral") == "1 of 1 passed in surroundings that look like production, 2 runs"
    assert said(proof, "others") == "before: 1 passed, 1 red, 0 skipped; after: 2 passed, 0 red, 0 skipped"
    assert said(proof, "repeats").startswith("4 reruns, each with one difference (hash seed, random seed, time zone")
    assert said(proof, "red_without") == "1 of 1 fail on the code without it"
    assert [(case.id, case.target, case.before, case.after) for case in proof.cases] == [
        (play.RED, True, "failed", "passed")
    ]
    assert [(repeat.patched, repeat.green, repeat.red) for repeat in proof.repeats_after] == [(True, 1, 0)] * 4 + [
        (False, 0, 1)
    ]
    assert [(repeat.patched, repeat.green, repeat.red) for repeat in proof.repeats_before] == [(False, 0, 1)] * 5
    assert [(file.path, file.protected) for file in proof.files] == [(play.CODE, "")]
    assert (proof.findings.before, proof.findings.new) == (0, 0)
    assert [attempt.number for attempt in proof.attempts] == [1, 2]


def test_the_diff_is_what_makes_the_one_tree_of_the_other(ended):
    run = ended(play.RIGHT)
    proof = run.prove()
    made = run.rig.trees.apply(run.state.base, proof.diff.encode())
    assert (run.state.base.tree, made.tree) == (proof.tree_before, proof.tree_after)


def test_model_and_cost_are_those_of_the_journal(ended):
    run = ended(play.WRONG, play.RIGHT)
    proof = run.prove()
    (model,) = proof.models
    assert (model.name, model.calls) == ("scripted:model", 3)
    assert (model.input_tokens, model.output_tokens) == (proof.cost.input_tokens, proof.cost.output_tokens)
    assert proof.cost.calls == run.state.spend.calls == 3


def test_made_again_or_elsewhere_it_is_the_same_to_the_byte(ended, tmp_path):
    run = ended(play.WRONG, play.RIGHT)
    first = as_json(run.prove())
    trees = GitTrees(tmp_path / "elsewhere", run.rig.adapters.blobs)
    there = AppContext(Settings(home=tmp_path / "x"), replace(run.rig.adapters, trees=trees), trees)
    again = as_json(asyncio.run(prove(there, run.state)))
    trees.close()
    assert first == again == as_json(run.prove())


class Changed:
    """A journal whose records were changed afterwards."""

    def __init__(self, inner: Any, change: Callable[[list[Any]], list[Any]]) -> None:
        self._inner, self._change = inner, change

    async def records(self, run_id: str) -> list[Any]:
        return self._change(await self._inner.records(run_id))


def with_journal(run: Ended, change: Callable[[list[Any]], list[Any]]) -> Proof:
    adapters = replace(run.rig.adapters, journal=Changed(run.rig.adapters.journal, change))
    return asyncio.run(prove(replace(run.house, adapters=adapters), run.state))


def test_the_journals_hash_is_over_every_record_in_order(ended):
    run = ended(play.RIGHT)
    records = run.records()
    plain = run.prove().journal
    whole = hashlib.sha256("".join(record.digest for record in records).encode()).hexdigest()
    assert (plain.records, plain.sha256) == (len(records), whole)
    assert journal_mark(records[:-1]).sha256 != plain.sha256
    assert journal_mark(records[::-1]).sha256 != plain.sha256


def test_with_a_record_that_was_changed_nothing_is_proven(ended):
    run = ended(play.RIGHT)
    with pytest.raises(StoreError, match="attempt 1, reproduce, call 0 was changed"):
        with_journal(run, lambda found: [found[0]._replace(result="{}"), *found[1:]])

    def forged(found: list[Any]) -> list[Any]:
        new = found[0]._replace(request_hash="0" * 64)
        return [new._replace(digest=digest(new)), *found[1:]]

    assert with_journal(run, forged).journal.sha256 != run.prove().journal.sha256


@pytest.mark.parametrize(
    ("answer", "result", "failed", "lacks"),
    [
        (play.WRONG, "unsolved", {"targets"}, f"still red: {play.RED}"),
        (play.TAMPER, "refused", {"untouched"}, f"not applied: {play.TESTS}: it is a test"),
        (play.SMELLY, "unsolved", {"findings"}, f"finding: {play.CODE}:2 F821"),
        (play.MISFIT, "unsolved", set[str](), f"not applied: {play.CODE}: "),
        (play.GARBAGE, "unsolved", set[str](), "no patch: the answer holds no edit"),
    ],
    ids=["red", "tampered", "finding", "misfit", "garbage"],
)
def test_a_run_that_is_not_verified_says_what_is_missing(ended, answer, result, failed, lacks):
    proof = ended(answer, limits=ONCE).prove()
    assert (proof.verified, proof.by_person, proof.result.value) == (False, False, result)
    assert proof.sentence.startswith("Not verified: ")
    shown = marks(proof)
    assert {name for name, mark in shown.items() if mark == "failed"} == failed
    assert shown["repeats"] == shown["red_without"] == shown["shrunk"] == "not_done"
    assert any(line.startswith(lacks) for line in proof.lacking), proof.lacking
    assert [case.after for case in proof.cases] == ["failed" if proof.after else "untested"]


def test_a_cheat_is_named_as_one(ended):
    special = play.block("    return number + number + 1", "    return 4 if number == 2 else number + number + 1")
    proof = ended(special, limits=ONCE).prove()
    assert marks(proof)["no_cheat"] == "failed"
    assert marks(proof)["findings"] == "passed"
    assert (proof.findings.tripwires, proof.findings.blocking) == (1, 0)


def test_quick_says_in_the_first_line_that_less_was_checked(ended):
    proof = ended(play.RIGHT, verify=Level.quick).prove()
    assert proof.verified
    assert proof.sentence.endswith("Only what level quick asks for was checked.")
    shown = marks(proof)
    assert {name for name, mark in shown.items() if mark == "not_done"} == {"repeats", "red_without", "shrunk"}
    assert said(proof, "repeats") == "not part of level quick"


def test_strict_counts_how_often_a_thing_was_varied(ended):
    proof = ended(play.RIGHT, verify=Level.strict).prove()
    assert "8 reruns, each with one difference (hash seed 2 times, random seed 2 times" in said(proof, "repeats")


def test_a_flake_is_named_and_nothing_is_verified(ended):
    run = ended(play.RIGHT)
    flaky = run.judged(flaky=Ids(count=3, first=(play.RED, "b")))
    now = flaky.now.model_copy(update={"reproduce": flaky.now.reproduce.model_copy(update={"flaky": ("t (green …)",)})})
    proof = run.prove(now=now, result=Result.unsolved)
    assert not proof.verified
    assert marks(proof)["repeats"] == "failed"
    assert "3 tests did not pass every time" in said(proof, "repeats")
    assert proof.flaky[:3] == (
        "t (green …)",
        f"{play.RED} (not green in every repeat)",
        "b (not green in every repeat)",
    )
    assert "and 1 more" in proof.flaky[3]


def test_the_proof_names_what_varied_when_a_test_failed(ended):
    run = ended(play.RIGHT)
    repeats = (Repeat(patched=True, varied="hash seed", green=1), Repeat(patched=True, varied="order", red=1))
    flaky = run.judged(flaky=Ids(count=1, first=(play.RED,)))
    judged = flaky.now.test.model_copy(update={"repeats": repeats})
    proof = run.prove(now=flaky.now.model_copy(update={"test": judged}), result=Result.unsolved)
    assert "(hash seed, order): 1 test failed when the order varied" in said(proof, "repeats")


@pytest.mark.parametrize(
    ("field", "check"),
    [
        ("newly_red", "others"),
        ("missing", "others"),
        ("newly_skipped", "others"),
        ("green_without", "red_without"),
        ("flaky", "repeats"),
    ],
)
def test_whatever_the_verdict_holds_against_a_patch_fails_its_check(ended, field, check):
    run = ended(play.RIGHT)
    state = run.judged(**{field: Ids.of([play.GREEN])})
    proof = run.prove(now=state.now)
    assert not proof.verified
    assert {name for name, mark in marks(proof).items() if mark == "failed"} == {check}
    assert any(line.endswith(f": {play.GREEN}") for line in proof.lacking)


def test_a_tripwire_that_asks_hides_no_serious_finding(ended):
    run = ended(play.RIGHT)
    asks = Finding(
        tool=TRIPWIRE, rule="exec", path=play.CODE, line=1, severity=Severity.warning, message="", fingerprint="a"
    )
    serious = asks.model_copy(update={"tool": "ruff", "severity": Severity.error, "fingerprint": "b"})
    full = run.rig.adapters.blobs.put(FindingList(findings=(asks, serious)).model_dump_json().encode())
    checked = run.state.now.check.model_copy(update={"full": full, "blocking": 1})
    proof = run.prove(now=run.state.now.model_copy(update={"check": checked}))
    assert (marks(proof)["findings"], said(proof, "findings")) == ("failed", "0 before in the same files, 1 new")
    assert said(proof, "no_cheat") == "1 sign of it"


def test_what_a_person_accepted_is_not_called_verified(ended):
    run = ended(play.RIGHT)
    proof = run.prove(now=run.judged(unexplained="7 tests ran where 9 ran before").now, reason="you accepted it")
    assert (proof.verified, proof.by_person) == (False, True)
    assert proof.sentence.startswith("Accepted by a person: 1 test that failed passes")
    assert "contradiction: 7 tests ran where 9 ran before" in proof.lacking
    assert "What a person accepted" in as_text(proof)


def test_a_shrunk_patch_is_the_one_that_is_shown(ended):
    run = ended(play.RIGHT)
    blobs, now = run.rig.adapters.blobs, run.state.now
    padded = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n--- y\n+a\n+b\n+++ c\n"
    tested = now.test.model_copy(update={"shrunk": now.apply.snapshot, "shrunk_diff": now.apply.diff, "dropped": 2})
    applied = now.apply.model_copy(update={"diff": blobs.put(padded.encode())})
    proof = run.prove(now=now.model_copy(update={"test": tested, "apply": applied}))
    assert said(proof, "shrunk") == "2 hunks left out: +3 -1 proposed, +1 -1 kept"
    assert "+    return number + number\n" in proof.diff


def test_before_and_after_are_of_every_test_that_changed_and_no_other(ended):
    run = ended(play.RIGHT)
    run = run._replace(state=run.judged(missing=Ids.of([play.GREEN])))
    proof = run.prove(now=with_results(run, lambda id_: id_ != play.GREEN))
    assert [(case.id, case.before, case.after) for case in proof.cases] == [
        (play.RED, "failed", "passed"),
        (play.GREEN, "passed", "absent"),
    ]


def test_a_test_that_a_person_let_change_is_shown_as_changed(ended):
    run = ended(play.RIGHT)
    changed = run.rig.trees.write(run.state.now.apply.snapshot, {play.TESTS: b"def test_double():\n    pass\n"})
    state = run.judged(tampered=(play.TESTS,))
    applied = state.now.apply.model_copy(update={"snapshot": changed})
    proof = run.prove(now=state.now.model_copy(update={"apply": applied}))
    assert (proof.verified, proof.by_person) == (False, True)
    assert {name for name, mark in marks(proof).items() if mark == "failed"} == {"untouched"}
    assert said(proof, "untouched") == "2 files in the patch, 1 of them a test or part of how tests are run"
    assert [line for line in proof.lacking if line.startswith(f"changed a protected file: {play.TESTS}: it is a test")]


def with_results(run: Ended, keep: Callable[[str], bool], *more: Case) -> Any:
    """Return the last attempt as if its run on the patch had given these results."""
    now, blobs = run.state.now, run.rig.adapters.blobs
    every = CaseList.model_validate_json(blobs.get(now.test.report.full)).cases
    cases = (*(case for case in every if keep(case.id)), *more)
    full = blobs.put(CaseList(cases=cases).model_dump_json().encode())
    report = now.test.report.model_copy(update={"full": full, "counts": OutcomeCounts.of(cases)})
    return now.model_copy(update={"test": now.test.model_copy(update={"report": report})})


def test_where_only_the_nearest_tests_ran_nothing_is_said_of_the_others(ended):
    run = ended(play.WRONG, limits=ONCE)
    proof = run.prove(now=with_results(run, lambda id_: id_ != play.GREEN))
    assert marks(proof)["others"] == "not_done"
    assert said(proof, "others") == "only 1 of 2 tests were run on it"
    assert [case.id for case in proof.cases] == [play.RED]


def test_a_file_that_could_not_be_collected_passes_with_its_tests(ended):
    run = ended(play.RIGHT)
    blobs, found = run.rig.adapters.blobs, run.state.now.reproduce
    broken = found.model_copy(update={"targets": Ids.of([play.TESTS]), "targets_full": blobs.put(play.TESTS.encode())})
    proof = run.prove(now=run.state.now.model_copy(update={"reproduce": broken}))
    assert [(case.id, case.after) for case in proof.cases if case.target] == [(play.TESTS, "passed")]


def test_a_new_test_and_one_that_runs_now_are_listed_too(ended):
    run = ended(play.RIGHT)
    proof = run.prove(now=with_results(run, lambda id_: True, Case(id="new", outcome=Outcome.passed)))
    assert ("new", False, "absent", "passed") in [
        (case.id, case.target, case.before, case.after) for case in proof.cases
    ]


@pytest.mark.parametrize(
    ("used", "named"), [({}, []), ({"input_tokens": 7}, ["other:model"])], ids=["unasked", "broken off"]
)
def test_a_question_that_the_budget_stopped_names_a_model_only_if_it_was_put_to_one(ended, used, named):
    run = ended(play.RIGHT)
    asked = next(record for record in run.records() if record.kind == "model")
    unasked = json.loads(asked.result)
    unasked["answer"] |= {"fault": "budget", "model": "other:model", "usage": used}
    new = asked._replace(result=json.dumps(unasked))
    proof = with_journal(run, lambda found: [*found, new._replace(digest=digest(new))])
    assert [model.name for model in proof.models] == ["scripted:model", *named]


class Edited:
    """A store that returns these edit records for the last attempt."""

    def __init__(self, inner: Any, rungs: tuple[EditRecord, ...]) -> None:
        self._inner, self._rungs = inner, rungs

    async def steps(self, run_id: str) -> list[Any]:
        rows = await self._inner.steps(run_id)
        return [self._bent(row) if row.step is Step.apply else row for row in rows]

    def _bent(self, row: Any) -> Any:
        applied = ApplyResult.model_validate_json(row.artifact).model_copy(update={"rungs": self._rungs})
        return row._replace(artifact=applied.model_dump_json())


def test_how_the_edits_fitted_is_counted_by_form(ended):
    run = ended(play.RIGHT)
    exact = EditRecord(kind=EditKind.block, rung=EditFit.exact)
    rungs = (exact, exact, EditRecord(kind=EditKind.diff, rung=EditFit.realign), EditRecord(kind=EditKind.whole))
    adapters = replace(run.rig.adapters, store=Edited(run.rig.adapters.store, rungs))
    proof = asyncio.run(prove(replace(run.house, adapters=adapters), run.state))
    (attempt,) = proof.attempts
    assert [(edit.form, edit.fit, edit.count) for edit in attempt.edits] == [
        (EditKind.block, EditFit.exact, 2),
        (EditKind.diff, EditFit.realign, 1),
        (EditKind.whole, None, 1),
    ]
    assert "2 edits (search and replace) fitted as written; 1 edit (diff) fitted at another line" in as_text(proof)


def test_a_run_that_has_not_ended_has_no_proof_yet(ended):
    run = ended(play.RIGHT, until=Step.test)
    with pytest.raises(ConfigError, match="has not ended") as caught:
        run.prove()
    assert caught.value.remedy == f"redstart resume {run.state.run_id}"
    with pytest.raises(ConfigError, match="has not ended"):
        run.prove(status=Status.needs_input, result=Result.needs_human)


def test_a_run_that_never_proposed_anything_has_nothing_to_prove(ended):
    run = ended(play.RIGHT)
    bare = run.state.now.model_copy(update={"patch": None, "apply": None, "test": None})
    with pytest.raises(ConfigError, match="nothing to prove: every test is green already"):
        run.prove(now=bare, result=Result.already_green, reason="every test is green already")


def test_a_created_program_is_proven_by_the_tests_that_came_first(ended):
    run = ended(play.RIGHT)
    spec = run.state.spec.model_copy(update={"task": CreateTask()})
    proof = run.prove(spec=spec)
    assert proof.sentence.startswith("Verified: 1 test, written before the code, failed without it and passes with it")
    assert said(proof, "shrunk") == "a new program is kept whole"
