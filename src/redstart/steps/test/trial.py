"""The test runs on one attempt's patch: the nearest tests, the whole suite, shrinking and the proof."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from functools import cached_property, partial
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.frozen import clip
from redstart.core.report import Case, CaseList, Ids, PatchTestResult, Repeat, ShrinkEnd, Verdict
from redstart.core.run import RunState
from redstart.core.set_aside import list_claims
from redstart.core.shell import PINNED, Completed, Variation
from redstart.ports.bundle import Ports
from redstart.ports.sandbox.port import SandboxSession
from redstart.toolkit.checks.code_problems import has_more_problems
from redstart.toolkit.honesty.all_checks import examine
from redstart.toolkit.honesty.controls.rewritten_tests import explain_text_dependence, rewrite
from redstart.toolkit.honesty.examination import GreenPatch
from redstart.toolkit.honesty.verdict.baseline import load_baseline_cases, load_targets
from redstart.toolkit.honesty.verdict.hunk_groups import group_hunks
from redstart.toolkit.honesty.verdict.hunks import Files, compose, split_hunks
from redstart.toolkit.honesty.verdict.levels import MEASURES, SHRINK_SECONDS
from redstart.toolkit.honesty.verdict.related_files import find_related_files
from redstart.toolkit.honesty.verdict.set_aside import find_changed, list_set_aside, load_ids
from redstart.toolkit.honesty.verdict.shrink import ShrinkBudget, shrink
from redstart.toolkit.honesty.verdict.verdict import find_passing_targets, find_tampered_paths, judge
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.patching.policy import find_protection, is_about_packages
from redstart.toolkit.retrieval.affected_tests import find_affected_tests
from redstart.toolkit.suites.execute import SuiteRun, build_execution, load_environment, run_suite
from redstart.toolkit.suites.request import SuiteRequest
from redstart.toolkit.suites.runner import can_select_tests
from redstart.toolkit.suites.suite_directory import TreeView

LONG_SUITE = 5.0
"""Baseline seconds above which the whole suite runs only if the nearest tests pass."""


class TrialRun(NamedTuple):
    """A run of the suite, and its verdict on the patch."""

    suite_run: SuiteRun
    verdict: Verdict
    unsteady: Collection[str] = ()


class PatchTrial:
    """The test runs on one attempt's patch, as its checks need them (`CheckRuns`). Each uses a fresh copy of a tree.

    Preliminary runs, of the nearest tests of the patch or of a part of it, use `session`. Every run that a verdict of
    the whole suite depends on gets a fresh sandbox.
    """

    is_concurrent = False

    def __init__(self, run: RunState, ports: Ports, patched: Snapshot, session: SandboxSession) -> None:
        self._run, self._ports, self._patched, self._session = run, ports, patched, session
        self._before, self._target_ids = load_baseline_cases(run, ports.blobs), load_targets(run, ports.blobs)
        self._changed = [change.path for change in ports.trees.list_changes(run.base, patched)]
        self._proposed_paths = run.now.apply.proposes if run.now.apply else ()
        # The check passed these only for a person to review: findings of any other kind block the patch.
        self._doubts = tuple(f"{item.path}: {item.message}" for item in run.now.check.first) if run.now.check else ()
        # A test that no attempt fixed is the code's: a patch may change how it fails.
        self._set_aside = load_ids(list_claims(list_set_aside(run)), ports.blobs)
        self._measures = MEASURES[run.spec.verify]
        self._trial_runs: dict[str, TrialRun] = {}
        self._failing_without_patch: frozenset[str] | None = None
        self._needs_text: set[str] = set()
        self._runs, self._seconds, self._dropped_hunks = 0, 0.0, 0
        self._shrink_end = ShrinkEnd.complete
        self._suite_seconds = run.now.reproduce.report.seconds if run.now.reproduce else 0.0

    @property
    def is_long(self) -> bool:
        """Whether the suite takes so long that the nearest tests should run first."""
        return self._suite_seconds > LONG_SUITE and can_select_tests(self._run.spec.suite)

    async def run_nearest(self, snapshot: Snapshot, activity: str = "nearest tests") -> TrialRun:
        """Run the targets and the tests that can reach the changed code.

        A nearby test that now fails but also fails without the patch depends on a test outside this selection: the
        whole suite judges it.
        """
        suite_run = await self._run_suite(activity, snapshot, self._near, preliminary=True)
        nearest_ids = set(self._near)
        baseline = [case for case in self._before if case.id in nearest_ids]
        verdict = judge(baseline, suite_run.cases, self._target_ids)
        if _has_few_new_failures(verdict):
            verdict = judge(
                baseline, suite_run.cases, self._target_ids, unsteady=await self._find_failing_without_patch()
            )
        return TrialRun(suite_run, verdict)

    async def _find_failing_without_patch(self) -> Collection[str]:
        """Return the nearest tests that fail without the patch when only they run; computed once."""
        if self._failing_without_patch is None:
            suite_run = await self._run_suite("without the patch", self._run.base, self._near)
            self._failing_without_patch = frozenset(case.id for case in suite_run.cases if case.is_red)
        return self._failing_without_patch

    async def run_all(self, snapshot: Snapshot) -> TrialRun:
        """Run the whole suite and compare it with the baseline, once per tree.

        If the targets pass and a few other tests newly fail, the suite runs again: a test that then passes is flaky.
        """
        if snapshot.tree not in self._trial_runs:
            suite_run = await self._run_suite("all tests", snapshot)
            trial_run = TrialRun(suite_run, self._judge_run(suite_run))
            if _has_few_new_failures(trial_run.verdict):
                rerun = await self._run_suite("all tests again", snapshot)
                unsteady = find_passing_targets(trial_run.verdict.newly_red.first, rerun.cases)
                trial_run = TrialRun(suite_run, self._judge_run(suite_run, unsteady=unsteady), unsteady)
            self._trial_runs[snapshot.tree] = trial_run
        return self._trial_runs[snapshot.tree]

    async def shrink_patch(self) -> Snapshot | None:
        """Leave out the hunks that the patch does not need; None if there is none.

        A hunk is needed if the nearest tests fail without it, or without one that belongs to it. It also stays if the
        patch without it would have a finding more, or if the user wants to keep it because of its file.
        """
        if not self._measures.shrink_runs or self._run.spec.task.makes_program:
            return None
        trees, base, spec = self._ports.trees, self._run.base, self._run.spec
        after = {path: trees.read(self._patched, path) for path in self._changed}
        kept_paths = find_related_files(self._changed) if spec.keep_related else frozenset[str]()
        kept = {path: after[path] for path in kept_paths}
        before = {path: trees.read(base, path) for path in self._changed} | kept
        hunks = split_hunks(before, after)

        def write_part(selected: Collection[int]) -> Snapshot:
            return trees.write(base, {**kept, **compose(before, hunks, selected)})

        def is_clean(files: Files) -> bool:
            return not (spec.keep_clean and has_more_problems(after, files))

        max_runs = self._measures.shrink_runs
        runs = itertools.count(1)

        async def is_passing(selected: frozenset[int]) -> bool:
            part = write_part(selected)
            return (await self.run_nearest(part, f"shrinking {next(runs)} of {max_runs}")).verdict.is_green

        seconds = max(SHRINK_SECONDS, self._measures.shrink_suites * self._suite_seconds)
        # The clock adds up the recorded durations of the runs, so that a replay decides the same.
        budget = ShrinkBudget(max_runs, seconds)
        result = await shrink(
            before,
            hunks,
            is_passing,
            budget=budget,
            clock=lambda: self._seconds,
            is_acceptable=is_clean,
            groups=group_hunks(before, hunks) if spec.keep_together else (),
        )
        self._dropped_hunks = len(hunks) - len(result.needed_hunks)
        self._shrink_end = ShrinkEnd.complete if result.is_complete else ShrinkEnd.limit
        return write_part(result.needed_hunks) if self._dropped_hunks else None

    async def prove(self, final: TrialRun, shrunk_tree: Snapshot | None) -> PatchTestResult:
        """Prove the patch with every measure of the level: the suite again, varied reruns, and a run without the
        patch."""
        tree = shrunk_tree or self._patched
        for _ in range(self._measures.full_runs - 1):
            full_run = await self._run_suite("all tests again", tree)
            if not (verdict := self._judge_run(full_run)).is_green:
                return self.build_result(TrialRun(full_run, verdict))
        reruns = await self._rerun_varied(tree)
        repeats = [
            self._repeat(suite_run, name) for suite_run, (name, _) in zip(reruns, self._measures.after, strict=True)
        ]
        unpatched: Sequence[Case] = ()
        if self._measures.fail_again:
            unpatched_run = await self._run_suite("without the patch", self._run.base, self._target_ids)
            repeats.append(self._repeat(unpatched_run, "", patched=False))
            unpatched = unpatched_run.cases
        verdict = self._judge_run(
            final.suite_run,
            unsteady=final.unsteady,
            repeats=[suite_run.cases for suite_run in reruns],
            unpatched=unpatched,
        )
        diff = self._ports.blobs.put(self._ports.trees.diff(self._run.base, shrunk_tree)) if shrunk_tree else ""
        proof = {
            "repeats": tuple(repeats),
            "shrunk": shrunk_tree,
            "shrunk_diff": diff,
            "dropped": self._dropped_hunks if shrunk_tree else 0,
            "shrink_end": ShrinkEnd.failed if self._dropped_hunks and not shrunk_tree else self._shrink_end,
        }
        return self.build_result(final._replace(verdict=verdict)).model_copy(update=proof)

    async def _rerun_varied(self, tree: Snapshot) -> list[SuiteRun]:
        """Rerun the targets with one varied condition each, in test files rewritten with the same meaning.

        If a rerun fails, it is made again with the original files: whether the text matters is examined later.
        """
        tests = self._with_baseline_tests(tree)
        rewritten = rewrite(self, self._run.spec.suite, tests, self._target_ids, self._seed(tree))
        reruns: list[SuiteRun] = []
        for number, (_, variation) in enumerate(self._measures.after, 1):
            activity = f"rerun {number} of {len(self._measures.after)}"
            suite_run = await self._run_tests(activity, rewritten, self._target_ids, variation)
            failed = set(self._target_ids) - find_passing_targets(self._target_ids, suite_run.cases)
            if failed and rewritten is not tests:
                suite_run = await self._run_tests(activity, tests, self._target_ids, variation)
                self._needs_text |= failed & find_passing_targets(self._target_ids, suite_run.cases)
            reruns.append(suite_run)
        return reruns

    def _seed(self, tree: Snapshot) -> str:
        """Return the seed of every draw: the author of a patch cannot predict it, and a replay gives the same."""
        return f"{self._run.run_id}/{tree.tree}"

    async def examine_patch(self, test_result: PatchTestResult, tree: Snapshot) -> PatchTestResult:
        """Apply every check of a green patch if the result is green or a person may make it green."""
        verdict = test_result.verdict
        if not (verdict.is_green or verdict.asks):
            return test_result
        run, blobs = self._run, self._ports.blobs
        patch = GreenPatch(
            base=run.base,
            patched=self._with_baseline_tests(tree),
            suite=run.spec.suite,
            environment=load_environment(blobs, run.spec),
            targets=self._target_ids,
            before=self._before,
            nearby=self._near,
            changed=tuple(self._changed),
            seed=self._seed(tree),
            after=CaseList.model_validate_json(blobs.get(test_result.report.full)).cases,
        )
        results = await examine(patch, self, self._measures)
        doubts = [doubt for result in results for doubt in result.doubts]
        if self._needs_text and (doubt := await explain_text_dependence(patch, self, sorted(self._needs_text))):
            doubts.append(doubt)
        verdict_changes = {
            "refuted": tuple(clip(doubt.message, 300) for doubt in doubts if doubt.refuses),
            "tampered": (*verdict.tampered, *(clip(doubt.message, 300) for doubt in doubts if not doubt.refuses)),
        }
        update = {"verdict": verdict.model_copy(update=verdict_changes), "runs": self._runs}
        return test_result.model_copy(update={**update, "evidence": tuple(result.evidence for result in results)})

    def build_result(self, trial_run: TrialRun) -> PatchTestResult:
        """Build the result. The verdict includes the proposed test changes: only a person can allow them."""
        verdict = trial_run.verdict.model_copy(
            update={"tampered": (*trial_run.verdict.tampered, *self._proposed_paths, *self._doubts)}
        )
        return PatchTestResult(
            report=trial_run.suite_run.report,
            verdict=verdict,
            runs=self._runs,
            unsteady=Ids.from_ids(trial_run.unsteady),
        )

    def _judge_run(
        self,
        suite_run: SuiteRun,
        *,
        unsteady: Collection[str] = (),
        repeats: Sequence[Sequence[Case]] = (),
        unpatched: Sequence[Case] = (),
    ) -> Verdict:
        return judge(
            self._before,
            suite_run.cases,
            self._target_ids,
            repeats=repeats,
            unpatched=unpatched,
            unsteady=unsteady,
            unexplained=suite_run.unexplained or self._describe_plugin_changes(suite_run),
            tampered=find_tampered_paths(self._changed, self._is_protected),
            changed=self._find_changed(suite_run),
        )

    def _find_changed(self, suite_run: SuiteRun) -> list[str]:
        """Return the tests that are set aside and do not fail as they did before the patch."""
        if not self._set_aside:
            return []
        run, trees = self._run, self._ports.trees
        view = TreeView.open(run.spec.suite, trees, run.base)
        identify = partial(sign, is_source=view.build_source_filter(find_protection))
        return find_changed(self._before, suite_run.cases, self._set_aside, lambda case: identify(case).key)

    def _describe_plugin_changes(self, suite_run: SuiteRun) -> str:
        """Describe in a sentence which plugins differ from the baseline; empty if none do."""
        reproduction = self._run.now.reproduce
        names = (reproduction.report.plugins if reproduction else "", suite_run.report.plugins)
        # Packages installed for the program bring their own plugins; the installer has checked each.
        if not names[0] or names[0] == names[1] or self._run.installed is not None:
            return ""
        if not names[1]:
            return "the run did not say which plugins took part, as the one before the patch did"
        baseline, current = (set(self._ports.blobs.get(name).decode().splitlines()) for name in names)
        return f"other plugins took part than at the baseline: {', '.join(sorted(baseline ^ current)[:5])}"

    def _repeat(self, suite_run: SuiteRun, condition: str, *, patched: bool = True) -> Repeat:
        passing = len(find_passing_targets(self._target_ids, suite_run.cases))
        return Repeat(patched=patched, varied=condition, green=passing, red=len(set(self._target_ids)) - passing)

    @cached_property
    def _near(self) -> tuple[str, ...]:
        """The targets, and every test in the files that import a changed file."""
        trees, suite = self._ports.trees, self._run.spec.suite
        view = TreeView.open(suite, trees, self._run.base)
        changed_paths = [suite.to_runner_path(path) for path in self._changed]
        files = set(find_affected_tests(changed_paths, sorted(view.snapshot_paths), view.read, is_test_path))
        nearby = (case.id for case in self._before if view.find_file(case.id) in files)
        return tuple(dict.fromkeys((*self._target_ids, *nearby)))

    async def _run_suite(
        self,
        activity: str,
        snapshot: Snapshot,
        ids: Sequence[str] = (),
        variation: Variation = PINNED,
        *,
        preliminary: bool = False,
    ) -> SuiteRun:
        tree = self._with_baseline_tests(snapshot)
        return await self._run_tests(activity, tree, ids, variation, preliminary=preliminary)

    async def _run_tests(
        self,
        activity: str,
        tree: Snapshot,
        ids: Sequence[str],
        variation: Variation = PINNED,
        *,
        preliminary: bool = False,
    ) -> SuiteRun:
        """Run these tests, or all of them, on exactly this tree."""
        run, ports = self._run, self._ports
        ports.announce(activity, tests=len(ids or self._before), seconds=0.0 if ids else self._suite_seconds)
        sandbox = self._session if preliminary else ports.sandbox
        view = TreeView.open(run.spec.suite, ports.trees, tree)
        sign_case = partial(sign, is_source=view.build_source_filter(find_protection))
        suite_run = await run_suite(sandbox, ports.blobs, run.spec, tree, sign=sign_case, ids=ids, variation=variation)
        self._runs += 1
        self._seconds += suite_run.report.seconds
        return suite_run

    async def run_tests(self, activity: str, tree: Snapshot, ids: Sequence[str]) -> SuiteRun:
        return await self._run_tests(activity, tree, ids)

    def list_files(self, tree: Snapshot) -> Sequence[str]:
        return self._ports.trees.list_files(tree)

    def read(self, tree: Snapshot, path: str) -> bytes | None:
        return self._ports.trees.read(tree, path)

    def write(self, tree: Snapshot, files: dict[str, bytes | None]) -> Snapshot:
        return self._ports.trees.write(tree, files)

    async def execute(self, activity: str, tree: Snapshot, request: SuiteRequest) -> Completed:
        """Run another command on exactly this tree."""
        ports, spec = self._ports, self._run.spec
        ports.announce(activity)
        completed = await ports.sandbox.run(build_execution(spec, tree, load_environment(ports.blobs, spec), request))
        self._runs += 1
        return completed

    def _is_protected(self, path: str) -> bool:
        is_open = path in self._proposed_paths or self._is_about_packages(path)
        return not is_open and find_protection(path, self._run.spec.protect) is not None

    def _is_about_packages(self, path: str) -> bool:
        read, run = self._ports.trees.read, self._run
        return run.spec.packages is not None and is_about_packages(
            path, read(run.base, path), read(self._patched, path)
        )

    def _with_baseline_tests(self, snapshot: Snapshot) -> Snapshot:
        """Restore the test files of the baseline. Policy has refused such changes already, but the verdict does not
        rely on that."""
        trees, run = self._ports.trees, self._run
        protected_paths = [path for path in self._changed if self._is_protected(path)]
        return (
            trees.write(snapshot, {path: trees.read(run.base, path) for path in protected_paths})
            if protected_paths
            else snapshot
        )


def _has_few_new_failures(verdict: Verdict) -> bool:
    """Return whether only a few newly failing tests count against a patch, all of them listed."""
    other_verdict = verdict.model_copy(update={"newly_red": Ids()})
    return other_verdict.is_green and 0 < verdict.newly_red.count == len(verdict.newly_red.first)
