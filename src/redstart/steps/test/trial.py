"""The test runs on one attempt's patch: the nearest tests, the whole suite, shrinking and the proof."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from functools import cached_property, partial
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.noun import clip
from redstart.core.report import Case, CaseList, Ids, PatchTestResult, Repeat, Verdict
from redstart.core.run import RunState
from redstart.core.shell import PINNED, Completed, Variation
from redstart.ports.bundle import Ports
from redstart.ports.sandbox.port import SandboxSession
from redstart.toolkit.honesty.controls.rewritten import doubt_text, rewrite
from redstart.toolkit.honesty.examine import GreenPatch
from redstart.toolkit.honesty.examining import examine
from redstart.toolkit.honesty.verdict.baseline import baseline_cases, targets
from redstart.toolkit.honesty.verdict.hunks import compose, hunks_of
from redstart.toolkit.honesty.verdict.levels import MEASURES, SHRINK_SECONDS
from redstart.toolkit.honesty.verdict.shrink import ShrinkBudget, shrink
from redstart.toolkit.honesty.verdict.verdict import green_among, judge, tampered
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.patching.policy import is_about_packages, protected
from redstart.toolkit.retrieval.reach import tests_reaching
from redstart.toolkit.suites.execute import SuiteRun, environment_of, execution, run_suite
from redstart.toolkit.suites.request import SuiteRequest
from redstart.toolkit.suites.runner import selects
from redstart.toolkit.suites.view import TreeView

LONG_SUITE = 5.0
"""Baseline seconds above which the whole suite runs only if the nearest tests pass."""


class TrialRun(NamedTuple):
    """A run of the suite, and its verdict on the patch."""

    done: SuiteRun
    verdict: Verdict
    unsteady: Collection[str] = ()


class PatchTrial:
    """The test runs on one attempt's patch, as its checks need them (`CheckRuns`). Each uses a fresh copy of a tree.

    Preliminary runs, of the nearest tests of the patch or of a part of it, use `session`. Every run that a verdict of
    the whole suite depends on gets a fresh sandbox.
    """

    def __init__(self, run: RunState, ports: Ports, patched: Snapshot, session: SandboxSession) -> None:
        self._run, self._ports, self._patched, self._session = run, ports, patched, session
        self._before, self._wanted = baseline_cases(run, ports.blobs), targets(run, ports.blobs)
        self._changed = [change.path for change in ports.trees.changes(run.base, patched)]
        self._proposed = run.now.apply.proposes if run.now.apply else ()
        # The check passed these only for a person to review: findings of any other kind block the patch.
        self._doubts = tuple(f"{item.path}: {item.message}" for item in run.now.check.first) if run.now.check else ()
        self._measures = MEASURES[run.spec.verify]
        self._known: dict[str, TrialRun] = {}
        self._bare: frozenset[str] | None = None
        self._needs_text: set[str] = set()
        self._runs, self._seconds, self._dropped = 0, 0.0, 0
        self._suite_seconds = run.now.reproduce.report.seconds if run.now.reproduce else 0.0

    @property
    def is_long(self) -> bool:
        """Whether it pays to run the nearest tests before the whole suite."""
        return self._suite_seconds > LONG_SUITE and selects(self._run.spec.suite)

    async def near(self, snapshot: Snapshot, activity: str = "nearest tests") -> TrialRun:
        """Run the targets and the tests that can reach the changed code.

        A nearby test that now fails but also fails without the patch depends on a test outside this selection: the
        whole suite judges it.
        """
        done = await self._suite(activity, snapshot, self._near, ahead=True)
        chosen = set(self._near)
        before = [case for case in self._before if case.id in chosen]
        verdict = judge(before, done.cases, self._wanted)
        if _few_got_red(verdict):
            verdict = judge(before, done.cases, self._wanted, unsteady=await self._red_without())
        return TrialRun(done, verdict)

    async def _red_without(self) -> Collection[str]:
        """Return the nearest tests that fail without the patch when only they run; computed once."""
        if self._bare is None:
            done = await self._suite("without the patch", self._run.base, self._near)
            self._bare = frozenset(case.id for case in done.cases if case.red)
        return self._bare

    async def whole(self, snapshot: Snapshot) -> TrialRun:
        """Run the whole suite and compare it with the baseline, once per tree.

        If the targets pass and a few other tests newly fail, the suite runs again: a test that then passes is flaky.
        """
        if snapshot.tree not in self._known:
            done = await self._suite("all tests", snapshot)
            seen = TrialRun(done, self._verdict(done))
            if _few_got_red(seen.verdict):
                again = await self._suite("all tests again", snapshot)
                unsteady = green_among(seen.verdict.newly_red.first, again.cases)
                seen = TrialRun(done, self._verdict(done, unsteady=unsteady), unsteady)
            self._known[snapshot.tree] = seen
        return self._known[snapshot.tree]

    async def shrunk(self) -> Snapshot | None:
        """Shrink the patch to what its nearest tests need to pass; None if all of it is needed."""
        if not self._measures.shrink_runs or self._run.spec.task.makes_program:
            return None
        trees, base = self._ports.trees, self._run.base
        before = {path: trees.read(base, path) for path in self._changed}
        hunks = hunks_of(before, {path: trees.read(self._patched, path) for path in self._changed})

        most = self._measures.shrink_runs
        runs = itertools.count(1)

        async def is_green(chosen: frozenset[int]) -> bool:
            part = trees.write(base, compose(before, hunks, chosen))
            return (await self.near(part, f"shrinking {next(runs)} of {most}")).verdict.honest_green

        seconds = max(SHRINK_SECONDS, self._measures.shrink_suites * self._suite_seconds)
        # The clock adds up the recorded durations of the runs, so that a replay decides the same.
        budget = ShrinkBudget(most, seconds)
        found = await shrink(before, hunks, is_green, budget=budget, clock=lambda: self._seconds)
        self._dropped = len(hunks) - len(found.kept)
        return trees.write(base, compose(before, hunks, found.kept)) if self._dropped else None

    async def proven(self, final: TrialRun, shrunk: Snapshot | None) -> PatchTestResult:
        """Prove the patch with every measure of the level: the suite again, varied reruns, and a run without the
        patch."""
        tree = shrunk or self._patched
        for _ in range(self._measures.full_runs - 1):
            again = await self._suite("all tests again", tree)
            if not (verdict := self._verdict(again)).honest_green:
                return self.judged(TrialRun(again, verdict))
        repeats = await self._repeated(tree)
        told = [self._repeat(done, name) for done, (name, _) in zip(repeats, self._measures.after, strict=True)]
        without: Sequence[Case] = ()
        if self._measures.fail_again:
            bare = await self._suite("without the patch", self._run.base, self._wanted)
            told.append(self._repeat(bare, "", patched=False))
            without = bare.cases
        verdict = self._verdict(
            final.done, unsteady=final.unsteady, repeats=[done.cases for done in repeats], without=without
        )
        diff = self._ports.blobs.put(self._ports.trees.diff(self._run.base, shrunk)) if shrunk else ""
        dropped = self._dropped if shrunk else 0
        proof = {"repeats": tuple(told), "shrunk": shrunk, "shrunk_diff": diff, "dropped": dropped}
        return self.judged(final._replace(verdict=verdict)).model_copy(update=proof)

    async def _repeated(self, tree: Snapshot) -> list[SuiteRun]:
        """Rerun the targets with one varied condition each, in test files rewritten with the same meaning.

        If a rerun fails, it is made again with the original files: whether the text matters is examined later.
        """
        tests = self._with_baseline_tests(tree)
        rewritten = rewrite(self, self._run.spec.suite, tests, self._wanted, self._seed(tree))
        repeats: list[SuiteRun] = []
        for number, (_, vary) in enumerate(self._measures.after, 1):
            activity = f"rerun {number} of {len(self._measures.after)}"
            done = await self._run_tests(activity, rewritten, self._wanted, vary)
            failed = set(self._wanted) - green_among(self._wanted, done.cases)
            if failed and rewritten is not tests:
                done = await self._run_tests(activity, tests, self._wanted, vary)
                self._needs_text |= failed & green_among(self._wanted, done.cases)
            repeats.append(done)
        return repeats

    def _seed(self, tree: Snapshot) -> str:
        """Return the seed of every draw: the author of a patch cannot predict it, and a replay gives the same."""
        return f"{self._run.run_id}/{tree.tree}"

    async def examined(self, judged: PatchTestResult, tree: Snapshot) -> PatchTestResult:
        """Apply every check of a green patch if the result is green or a person may make it green."""
        verdict = judged.verdict
        if not (verdict.honest_green or verdict.asks):
            return judged
        run, blobs = self._run, self._ports.blobs
        green = GreenPatch(
            base=run.base,
            patched=self._with_baseline_tests(tree),
            suite=run.spec.suite,
            environment=environment_of(blobs, run.spec),
            targets=self._wanted,
            before=self._before,
            nearby=self._near,
            changed=tuple(self._changed),
            seed=self._seed(tree),
            after=CaseList.model_validate_json(blobs.get(judged.report.full)).cases,
        )
        results = await examine(green, self, self._measures)
        doubts = [doubt for result in results for doubt in result.doubts]
        if self._needs_text and (doubt := await doubt_text(green, self, sorted(self._needs_text))):
            doubts.append(doubt)
        doubted = {
            "refuted": tuple(clip(doubt.words, 300) for doubt in doubts if doubt.refuses),
            "tampered": (*verdict.tampered, *(clip(doubt.words, 300) for doubt in doubts if not doubt.refuses)),
        }
        update = {"verdict": verdict.model_copy(update=doubted), "runs": self._runs}
        return judged.model_copy(update={**update, "evidence": tuple(result.evidence for result in results)})

    def judged(self, seen: TrialRun) -> PatchTestResult:
        """Build the result. The verdict includes the proposed test changes: only a person can allow them."""
        verdict = seen.verdict.model_copy(update={"tampered": (*seen.verdict.tampered, *self._proposed, *self._doubts)})
        return PatchTestResult(
            report=seen.done.report, verdict=verdict, runs=self._runs, unsteady=Ids.of(seen.unsteady)
        )

    def _verdict(
        self,
        done: SuiteRun,
        *,
        unsteady: Collection[str] = (),
        repeats: Sequence[Sequence[Case]] = (),
        without: Sequence[Case] = (),
    ) -> Verdict:
        return judge(
            self._before,
            done.cases,
            self._wanted,
            repeats=repeats,
            without=without,
            unsteady=unsteady,
            unexplained=done.unexplained or self._other_plugins(done),
            tampered=tampered(self._changed, self._kept_back),
        )

    def _other_plugins(self, done: SuiteRun) -> str:
        """Describe in a sentence which plugins differ from the baseline; empty if none do."""
        found = self._run.now.reproduce
        names = (found.report.plugins if found else "", done.report.plugins)
        # Packages installed for the program bring their own plugins; the installer has checked each.
        if not names[0] or names[0] == names[1] or self._run.installed is not None:
            return ""
        if not names[1]:
            return "the run did not say which plugins took part, as the one before the patch did"
        was, now = (set(self._ports.blobs.get(name).decode().splitlines()) for name in names)
        return f"other plugins took part than at the baseline: {', '.join(sorted(was ^ now)[:5])}"

    def _repeat(self, done: SuiteRun, varied: str, *, patched: bool = True) -> Repeat:
        green = len(green_among(self._wanted, done.cases))
        return Repeat(patched=patched, varied=varied, green=green, red=len(set(self._wanted)) - green)

    @cached_property
    def _near(self) -> tuple[str, ...]:
        """The targets, and every test in the files that import a changed file."""
        trees, suite = self._ports.trees, self._run.spec.suite
        view = TreeView(suite, trees.files(self._run.base), partial(trees.read, self._run.base))
        touched = [suite.as_shown(path) for path in self._changed]
        files = set(tests_reaching(touched, sorted(view.kept), view.read, is_test_path))
        nearby = (case.id for case in self._before if view.file_of(case.id) in files)
        return tuple(dict.fromkeys((*self._wanted, *nearby)))

    async def _suite(
        self,
        activity: str,
        snapshot: Snapshot,
        ids: Sequence[str] = (),
        vary: Variation = PINNED,
        *,
        ahead: bool = False,
    ) -> SuiteRun:
        tree = self._with_baseline_tests(snapshot)
        return await self._run_tests(activity, tree, ids, vary, ahead=ahead)

    async def _run_tests(
        self, activity: str, tree: Snapshot, ids: Sequence[str], vary: Variation = PINNED, *, ahead: bool = False
    ) -> SuiteRun:
        """Run these tests, or all of them, on exactly this tree."""
        run, ports = self._run, self._ports
        ports.announce(activity, tests=len(ids or self._before), seconds=0.0 if ids else self._suite_seconds)
        where = self._session if ahead else ports.sandbox
        view = TreeView(run.spec.suite, ports.trees.files(tree), partial(ports.trees.read, tree))
        named = partial(sign, is_source=view.source(protected))
        done = await run_suite(where, ports.blobs, run.spec, tree, sign=named, ids=ids, vary=vary)
        self._runs += 1
        self._seconds += done.report.seconds
        return done

    async def suite(self, activity: str, tree: Snapshot, ids: Sequence[str]) -> SuiteRun:
        return await self._run_tests(activity, tree, ids)

    def files(self, tree: Snapshot) -> Sequence[str]:
        return self._ports.trees.files(tree)

    def read(self, tree: Snapshot, path: str) -> bytes | None:
        return self._ports.trees.read(tree, path)

    def write(self, tree: Snapshot, files: dict[str, bytes | None]) -> Snapshot:
        return self._ports.trees.write(tree, files)

    async def execute(self, activity: str, tree: Snapshot, asked: SuiteRequest) -> Completed:
        """Run another command on exactly this tree."""
        ports, spec = self._ports, self._run.spec
        ports.announce(activity)
        completed = await ports.sandbox.run(execution(spec, tree, environment_of(ports.blobs, spec), asked))
        self._runs += 1
        return completed

    def _kept_back(self, path: str) -> bool:
        is_open = path in self._proposed or self._is_about_packages(path)
        return not is_open and protected(path, self._run.spec.protect) is not None

    def _is_about_packages(self, path: str) -> bool:
        read, run = self._ports.trees.read, self._run
        return run.spec.packages is not None and is_about_packages(
            path, read(run.base, path), read(self._patched, path)
        )

    def _with_baseline_tests(self, snapshot: Snapshot) -> Snapshot:
        """Restore the test files of the baseline. Policy has refused such changes already, but the verdict does not
        rely on that."""
        trees, run = self._ports.trees, self._run
        theirs = [path for path in self._changed if self._kept_back(path)]
        return trees.write(snapshot, {path: trees.read(run.base, path) for path in theirs}) if theirs else snapshot


def _few_got_red(verdict: Verdict) -> bool:
    """Return whether only a few newly failing tests count against a patch, all of them listed."""
    alone = verdict.model_copy(update={"newly_red": Ids()})
    return alone.honest_green and 0 < verdict.newly_red.count == len(verdict.newly_red.first)
