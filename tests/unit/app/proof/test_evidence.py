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

from redstart.app.proof.evidence import create_journal_mark, prove
from redstart.app.proof.schema import CheckMark, CheckName, Proof
from redstart.app.proof.text import as_json, as_text
from redstart.app.settings import Settings
from redstart.app.wire import AppContext
from redstart.core.change import ApplyResult, EditFit, EditKind, EditRecord
from redstart.core.errors import ConfigError, StoreError
from redstart.core.finding import TRIPWIRE, Finding, FindingList, Severity
from redstart.core.report import Case, CaseList, Ids, Outcome, OutcomeCounts, Repeat, ShrinkEnd
from redstart.core.run import Level, Limits, Result, RunState, Status, Step
from redstart.core.tasks import CreateTask
from redstart.engines.inline import run_inline
from redstart.engines.journal import compute_digest
from redstart.engines.step_driver import drive
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

    def prove(self, **changes: Any) -> Proof:
        """Prove the run with these values in its state."""
        return asyncio.run(prove(self.house, self.state.model_copy(update=changes)))

    def records(self) -> list[JournalRecord]:
        return asyncio.run(self.rig.adapters.journal.list_records(self.state.run_id))

    def judged(self, **changes: Any) -> RunState:
        """Return the state with these values in its verdict."""
        assert self.state.now.test
        verdict = self.state.now.test.verdict.model_copy(update=changes)
        test_result = self.state.now.test.model_copy(update={"verdict": verdict})
        return self.state.model_copy(update={"now": self.state.now.model_copy(update={"test": test_result})})


@pytest.fixture
def ended(tmp_path: Path) -> Iterator[Callable[..., Ended]]:
    """Return a function that drives a run to its end with these answers."""
    rigs: list[Rig] = []

    def drive_it(*answers: str, until: Step | None = None, **options: Any) -> Ended:
        rig = make_rig(tmp_path / f"snapshots-{len(rigs)}")
        rigs.append(rig)
        rig.with_model([*answers, play.CARD])

        async def go() -> RunState:
            claim = await rig.adapters.store.claim(await rig.begin(**{"verify": Level.standard, **options}))
            return (await drive(rig.adapters, claim, run_inline, until)).state

        return Ended(rig, AppContext(Settings(home=tmp_path), rig.adapters, rig.trees), asyncio.run(go()))

    yield drive_it
    for rig in rigs:
        rig.trees.close()


def list_marks(proof: Proof) -> dict[str, str]:
    assert [check.name for check in proof.checks] == list(CheckName)
    return {check.name.value: check.mark.value for check in proof.checks}


def get_check_text(proof: Proof, name: str) -> str:
    return next(check.said for check in proof.checks if check.name == name)


def test_proof_of_verified_run_shows_each_check_with_its_figures(ended):
    run = ended(play.WRONG, play.RIGHT)
    proof = run.prove()
    assert (proof.verified, proof.by_person, proof.result, proof.lacking) == (True, False, Result.verified, ())
    assert proof.sentence == (
        "Verified: 1 test that failed without this patch passes with it; no other test got worse."
    )
    assert set(list_marks(proof).values()) == {CheckMark.passed.value}
    assert get_check_text(proof, "able_to_fail") == "1 of 1 failed when altered, 4 runs"
    assert get_check_text(proof, "neutral") == "1 of 1 passed in surroundings that look like production, 2 runs"
    assert (
        get_check_text(proof, "others") == "before: 1 passed, 1 failed, 0 skipped; after: 2 passed, 0 failed, 0 skipped"
    )
    assert get_check_text(proof, "repeats").startswith(
        "4 reruns, each with one difference (hash seed, random seed, time zone"
    )
    assert get_check_text(proof, "red_without") == "1 of 1 fail without the patch"
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


def test_diff_turns_the_tree_before_into_the_tree_after(ended):
    run = ended(play.RIGHT)
    proof = run.prove()
    patched_tree = run.rig.trees.apply(run.state.base, proof.diff.encode())
    assert (run.state.base.tree, patched_tree.tree) == (proof.tree_before, proof.tree_after)


def test_model_and_cost_match_the_journal(ended):
    run = ended(play.WRONG, play.RIGHT)
    proof = run.prove()
    (model,) = proof.models
    assert (model.name, model.calls) == ("scripted:model", 3)
    assert (model.input_tokens, model.output_tokens) == (proof.cost.input_tokens, proof.cost.output_tokens)
    assert proof.cost.calls == run.state.spend.calls == 3


def test_proof_is_reproducible_byte_for_byte(ended, tmp_path):
    run = ended(play.WRONG, play.RIGHT)
    first_json = as_json(run.prove())
    trees = GitTrees(tmp_path / "elsewhere", run.rig.adapters.blobs)
    other_app = AppContext(Settings(home=tmp_path / "x"), replace(run.rig.adapters, trees=trees), trees)
    second_json = as_json(asyncio.run(prove(other_app, run.state)))
    trees.close()
    assert first_json == second_json == as_json(run.prove())


class Changed:
    """A journal whose records were changed afterwards."""

    def __init__(self, inner: Any, change: Callable[[list[Any]], list[Any]]) -> None:
        self._inner, self._change = inner, change

    async def list_records(self, run_id: str) -> list[Any]:
        return self._change(await self._inner.list_records(run_id))


def with_journal(run: Ended, change: Callable[[list[Any]], list[Any]]) -> Proof:
    adapters = replace(run.rig.adapters, journal=Changed(run.rig.adapters.journal, change))
    return asyncio.run(prove(replace(run.house, adapters=adapters), run.state))


def test_journal_hash_covers_every_record_in_order(ended):
    run = ended(play.RIGHT)
    records = run.records()
    journal = run.prove().journal
    full_hash = hashlib.sha256("".join(record.digest for record in records).encode()).hexdigest()
    assert (journal.records, journal.sha256) == (len(records), full_hash)
    assert create_journal_mark(records[:-1]).sha256 != journal.sha256
    assert create_journal_mark(records[::-1]).sha256 != journal.sha256


def test_changed_record_prevents_a_proof(ended):
    run = ended(play.RIGHT)
    with pytest.raises(StoreError, match="attempt 1, reproduce, call 0 was changed"):
        with_journal(run, lambda records: [records[0]._replace(result="{}"), *records[1:]])

    def forge(records: list[Any]) -> list[Any]:
        new = records[0]._replace(request_hash="0" * 64)
        return [new._replace(digest=compute_digest(new)), *records[1:]]

    assert with_journal(run, forge).journal.sha256 != run.prove().journal.sha256


@pytest.mark.parametrize(
    ("answer", "result", "failed", "lacks"),
    [
        (play.WRONG, "unsolved", {"targets"}, f"still failing: {play.RED}"),
        (play.TAMPER, "refused", {"untouched"}, f"not applied: {play.TESTS}: it is a test"),
        (play.SMELLY, "unsolved", {"findings"}, f"finding: {play.CODE}:2 F821"),
        (play.MISFIT, "unsolved", set[str](), f"not applied: {play.CODE}: "),
        (play.GARBAGE, "unsolved", set[str](), "no patch: the answer holds no edit"),
    ],
    ids=["red", "tampered", "finding", "misfit", "garbage"],
)
def test_proof_of_unverified_run_says_what_is_missing(ended, answer, result, failed, lacks):
    proof = ended(answer, limits=ONCE).prove()
    assert (proof.verified, proof.by_person, proof.result.value) == (False, False, result)
    assert proof.sentence.startswith("Not verified: ")
    check_marks = list_marks(proof)
    assert {name for name, mark in check_marks.items() if mark == "failed"} == failed
    assert check_marks["repeats"] == check_marks["red_without"] == check_marks["shrunk"] == "not_done"
    assert any(line.startswith(lacks) for line in proof.lacking), proof.lacking
    assert [case.after for case in proof.cases] == ["failed" if proof.after else "untested"]


def test_cheating_patch_fails_the_cheat_check(ended):
    special_case = play.block("    return number + number + 1", "    return 4 if number == 2 else number + number + 1")
    proof = ended(special_case, limits=ONCE).prove()
    assert list_marks(proof)["no_cheat"] == "failed"
    assert list_marks(proof)["findings"] == "passed"
    assert (proof.findings.tripwires, proof.findings.blocking) == (1, 0)


def test_quick_level_says_first_that_less_was_checked(ended):
    proof = ended(play.RIGHT, verify=Level.quick).prove()
    assert proof.verified
    assert proof.sentence.endswith("Only the checks of level quick were done.")
    check_marks = list_marks(proof)
    assert {name for name, mark in check_marks.items() if mark == "not_done"} == {"repeats", "red_without", "shrunk"}
    assert get_check_text(proof, "repeats") == "not part of level quick"


def test_strict_level_counts_each_variation(ended):
    proof = ended(play.RIGHT, verify=Level.strict).prove()
    assert "8 reruns, each with one difference (hash seed 2 times, random seed 2 times" in get_check_text(
        proof, "repeats"
    )


def test_flaky_test_is_named_and_prevents_verification(ended):
    run = ended(play.RIGHT)
    flaky = run.judged(flaky=Ids(count=3, first=(play.RED, "b")))
    attempt = flaky.now.model_copy(
        update={"reproduce": flaky.now.reproduce.model_copy(update={"flaky": ("t (green …)",)})}
    )
    proof = run.prove(now=attempt, result=Result.unsolved)
    assert not proof.verified
    assert list_marks(proof)["repeats"] == "failed"
    assert "3 tests did not pass every time" in get_check_text(proof, "repeats")
    assert proof.flaky[:3] == (
        "t (green …)",
        f"{play.RED} (did not pass in every rerun)",
        "b (did not pass in every rerun)",
    )
    assert "and 1 more" in proof.flaky[3]


def test_proof_names_what_varied_when_a_test_failed(ended):
    run = ended(play.RIGHT)
    repeats = (Repeat(patched=True, varied="hash seed", green=1), Repeat(patched=True, varied="order", red=1))
    flaky = run.judged(flaky=Ids(count=1, first=(play.RED,)))
    test_result = flaky.now.test.model_copy(update={"repeats": repeats})
    proof = run.prove(now=flaky.now.model_copy(update={"test": test_result}), result=Result.unsolved)
    assert "(hash seed, order): 1 test failed when the order varied" in get_check_text(proof, "repeats")


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
def test_each_problem_in_the_verdict_fails_its_check(ended, field, check):
    run = ended(play.RIGHT)
    state = run.judged(**{field: Ids.from_ids([play.GREEN])})
    proof = run.prove(now=state.now)
    assert not proof.verified
    assert {name for name, mark in list_marks(proof).items() if mark == "failed"} == {check}
    assert any(line.endswith(f": {play.GREEN}") for line in proof.lacking)


def test_asking_tripwire_does_not_hide_a_serious_finding(ended):
    run = ended(play.RIGHT)
    question_finding = Finding(
        tool=TRIPWIRE, rule="exec", path=play.CODE, line=1, severity=Severity.warning, message="", fingerprint="a"
    )
    serious_finding = question_finding.model_copy(
        update={"tool": "ruff", "severity": Severity.error, "fingerprint": "b"}
    )
    full = run.rig.adapters.blobs.put(
        FindingList(findings=(question_finding, serious_finding)).model_dump_json().encode()
    )
    check_result = run.state.now.check.model_copy(update={"full": full, "blocking": 1})
    proof = run.prove(now=run.state.now.model_copy(update={"check": check_result}))
    assert (list_marks(proof)["findings"], get_check_text(proof, "findings")) == (
        "failed",
        "0 in the same files before, 1 new",
    )
    assert get_check_text(proof, "no_cheat") == "1 sign of a cheat"


def test_patch_accepted_by_a_person_is_not_called_verified(ended):
    run = ended(play.RIGHT)
    proof = run.prove(now=run.judged(unexplained="7 tests ran where 9 ran before").now, reason="you accepted it")
    assert (proof.verified, proof.by_person) == (False, True)
    assert proof.sentence.startswith("Accepted by a person: 1 test that failed passes")
    assert "contradiction: 7 tests ran where 9 ran before" in proof.lacking
    assert "What a person accepted" in as_text(proof)


def test_proof_shows_the_shrunk_patch(ended):
    run = ended(play.RIGHT)
    blobs, attempt = run.rig.adapters.blobs, run.state.now
    padded_diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n--- y\n+a\n+b\n+++ c\n"
    test_result = attempt.test.model_copy(
        update={"shrunk": attempt.apply.snapshot, "shrunk_diff": attempt.apply.diff, "dropped": 2}
    )
    applied = attempt.apply.model_copy(update={"diff": blobs.put(padded_diff.encode())})
    proof = run.prove(now=attempt.model_copy(update={"test": test_result, "apply": applied}))
    assert get_check_text(proof, "shrunk") == "2 hunks left out: +3 -1 proposed, +1 -1 kept"
    assert "+    return number + number\n" in proof.diff


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (ShrinkEnd.complete, "nothing found that could be left out"),
        (ShrinkEnd.limit, "no hunk left out; the limit was reached before every hunk was tried"),
        (ShrinkEnd.failed, "no hunk left out: a smaller patch passed the nearest tests, but not all tests"),
    ],
)
def test_proof_says_how_the_search_for_unneeded_hunks_ended(ended, end, text):
    run = ended(play.RIGHT, verify=Level.standard)
    test_result = run.state.now.test.model_copy(update={"shrink_end": end})
    proof = run.prove(now=run.state.now.model_copy(update={"test": test_result}))
    assert get_check_text(proof, "shrunk") == text


def test_before_and_after_list_exactly_the_changed_tests(ended):
    run = ended(play.RIGHT)
    run = run._replace(state=run.judged(missing=Ids.from_ids([play.GREEN])))
    proof = run.prove(now=with_results(run, lambda id_: id_ != play.GREEN))
    assert [(case.id, case.before, case.after) for case in proof.cases] == [
        (play.RED, "failed", "passed"),
        (play.GREEN, "passed", "absent"),
    ]


def test_edited_test_allowed_by_a_person_is_shown_as_changed(ended):
    run = ended(play.RIGHT)
    changed = run.rig.trees.write(run.state.now.apply.snapshot, {play.TESTS: b"def test_double():\n    pass\n"})
    state = run.judged(tampered=(play.TESTS,))
    applied = state.now.apply.model_copy(update={"snapshot": changed})
    proof = run.prove(now=state.now.model_copy(update={"apply": applied}))
    assert (proof.verified, proof.by_person) == (False, True)
    assert {name for name, mark in list_marks(proof).items() if mark == "failed"} == {"untouched"}
    assert (
        get_check_text(proof, "untouched") == "2 files in the patch, 1 of them a test or part of the test configuration"
    )
    assert [line for line in proof.lacking if line.startswith(f"changed a protected file: {play.TESTS}: it is a test")]


def with_results(run: Ended, keep: Callable[[str], bool], *extra_cases: Case) -> Any:
    """Return the last attempt as if its run on the patch had given these results."""
    attempt, blobs = run.state.now, run.rig.adapters.blobs
    all_cases = CaseList.model_validate_json(blobs.get(attempt.test.report.full)).cases
    cases = (*(case for case in all_cases if keep(case.id)), *extra_cases)
    full = blobs.put(CaseList(cases=cases).model_dump_json().encode())
    report = attempt.test.report.model_copy(update={"full": full, "counts": OutcomeCounts.from_cases(cases)})
    return attempt.model_copy(update={"test": attempt.test.model_copy(update={"report": report})})


def test_proof_is_silent_about_tests_that_were_not_run(ended):
    run = ended(play.WRONG, limits=ONCE)
    proof = run.prove(now=with_results(run, lambda id_: id_ != play.GREEN))
    assert list_marks(proof)["others"] == "not_done"
    assert get_check_text(proof, "others") == "only 1 of 2 tests were run on it"
    assert [case.id for case in proof.cases] == [play.RED]


def test_uncollectable_file_passes_with_its_tests(ended):
    run = ended(play.RIGHT)
    blobs, reproduction = run.rig.adapters.blobs, run.state.now.reproduce
    changed_reproduction = reproduction.model_copy(
        update={"targets": Ids.from_ids([play.TESTS]), "targets_full": blobs.put(play.TESTS.encode())}
    )
    proof = run.prove(now=run.state.now.model_copy(update={"reproduce": changed_reproduction}))
    assert [(case.id, case.after) for case in proof.cases if case.target] == [(play.TESTS, "passed")]


def test_new_and_newly_running_tests_are_listed(ended):
    run = ended(play.RIGHT)
    proof = run.prove(now=with_results(run, lambda id_: True, Case(id="new", outcome=Outcome.passed)))
    assert ("new", False, "absent", "passed") in [
        (case.id, case.target, case.before, case.after) for case in proof.cases
    ]


@pytest.mark.parametrize(
    ("used", "named"), [({}, []), ({"input_tokens": 7}, ["other:model"])], ids=["unasked", "broken off"]
)
def test_question_stopped_by_budget_names_a_model_only_if_asked(ended, used, named):
    run = ended(play.RIGHT)
    model_record = next(record for record in run.records() if record.kind == "model")
    result_data = json.loads(model_record.result)
    result_data["answer"] |= {"fault": "budget", "model": "other:model", "usage": used}
    new = model_record._replace(result=json.dumps(result_data))
    proof = with_journal(run, lambda records: [*records, new._replace(digest=compute_digest(new))])
    assert [model.name for model in proof.models] == ["scripted:model", *named]


class Edited:
    """A store that returns these edit records for the last attempt."""

    def __init__(self, inner: Any, edit_records: tuple[EditRecord, ...]) -> None:
        self._inner, self._rungs = inner, edit_records

    async def list_steps(self, run_id: str) -> list[Any]:
        rows = await self._inner.list_steps(run_id)
        return [self._replace_edits(row) if row.step is Step.apply else row for row in rows]

    def _replace_edits(self, row: Any) -> Any:
        applied = ApplyResult.model_validate_json(row.artifact).model_copy(update={"rungs": self._rungs})
        return row._replace(artifact=applied.model_dump_json())


def test_edit_fits_are_counted_by_form(ended):
    run = ended(play.RIGHT)
    exact = EditRecord(kind=EditKind.block, rung=EditFit.exact)
    edit_records = (exact, exact, EditRecord(kind=EditKind.diff, rung=EditFit.realign), EditRecord(kind=EditKind.whole))
    adapters = replace(run.rig.adapters, store=Edited(run.rig.adapters.store, edit_records))
    proof = asyncio.run(prove(replace(run.house, adapters=adapters), run.state))
    (attempt,) = proof.attempts
    assert [(edit.form, edit.fit, edit.count) for edit in attempt.edits] == [
        (EditKind.block, EditFit.exact, 2),
        (EditKind.diff, EditFit.realign, 1),
        (EditKind.whole, None, 1),
    ]
    assert "2 edits (search and replace) fitted as written; 1 edit (diff) fitted at another line" in as_text(proof)


def test_unfinished_run_has_no_proof_yet(ended):
    run = ended(play.RIGHT, until=Step.test)
    with pytest.raises(ConfigError, match="has not ended") as caught:
        run.prove()
    assert caught.value.remedy == f"redstart resume {run.state.run_id}"
    with pytest.raises(ConfigError, match="has not ended"):
        run.prove(status=Status.needs_input, result=Result.needs_human)


def test_run_without_a_patch_has_nothing_to_prove(ended):
    run = ended(play.RIGHT)
    empty_attempt = run.state.now.model_copy(update={"patch": None, "apply": None, "test": None})
    with pytest.raises(ConfigError, match="nothing to prove: every test is green already"):
        run.prove(now=empty_attempt, result=Result.already_green, reason="every test is green already")


def test_created_program_is_proven_by_tests_written_first(ended):
    run = ended(play.RIGHT)
    spec = run.state.spec.model_copy(update={"task": CreateTask()})
    proof = run.prove(spec=spec)
    assert proof.sentence.startswith("Verified: 1 test, written before the code, failed without it and passes with it")
    assert get_check_text(proof, "shrunk") == "a new program is kept whole"
