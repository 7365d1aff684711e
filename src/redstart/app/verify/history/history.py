"""Verify the changes already merged, each commit against its first parent. Each verdict is kept at once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from redstart.app.exit_codes import history_exit_code
from redstart.app.settings.store import find_tenant_folder
from redstart.app.verify.history.commits import HistoryCommit, list_commits
from redstart.app.verify.history.counts import count_changes, group_by_agent, group_by_author, is_outage
from redstart.app.verify.history.summary import summarize
from redstart.app.verify.kept_files import KeptFiles
from redstart.app.verify.kept_results import compute_setup_key
from redstart.app.verify.matrix import CODE_ROLES
from redstart.app.verify.revisions import Revision, Revisions, find_commit, find_default_branch, take_revision
from redstart.app.verify.suite_specs import SuiteOptions, choose_changed_suite, create_specs
from redstart.app.verify.verify import NO_TESTS_READ, STEP, VerifyRequest, verify_revisions
from redstart.app.wire import AppContext
from redstart.app.workspace import MayLend
from redstart.core.errors import ConfigError
from redstart.core.events import Progress
from redstart.core.history import ChangeHistory, MergedChange
from redstart.core.run import Level
from redstart.core.verification import ASKING, ClaimKind, CodeVersion, Verification, VerificationEnd
from redstart.toolkit.base.concurrency import finish_by
from redstart.toolkit.base.git import ask_git, require_git
from redstart.toolkit.suites.detection.command import require_results
from redstart.toolkit.suites.detection.history import find_work_root

FOLDER = "verified-changes"
MOST_KEPT = 5000
_AGAINST = (ClaimKind.hidden, ClaimKind.broken, *ASKING)


class HistoryRequest(NamedTuple):
    """The user's options for a verification of the history, besides the folder."""

    days: int
    head: str = ""
    """The branch; empty for the default branch."""
    suite: SuiteOptions = SuiteOptions()
    tests: tuple[str, ...] = ()
    """Globs of test files that their names do not identify."""
    level: Level = Level.quick
    minutes: float | None = None
    """When to stop examining changes; None for no limit."""


async def verify_history(
    app: AppContext,
    path: Path,
    request: HistoryRequest,
    *,
    report: Callable[[Progress], None],
    may_lend: MayLend | None = None,
) -> ChangeHistory:
    """Verify the changes of a branch in the period, newest first. The repo is only read.

    What an earlier call found is not run again. `report` is called with the progress, and `may_lend` decides as for
    `create_fix_run`. Raises `ConfigError` if the branch, its history or the tests cannot be determined, and what the
    sandbox raises.
    """
    require_git()
    require_results(request.suite.command, request.suite.junit)
    root = find_work_root(path)
    name = request.head or find_default_branch(root) or "HEAD"
    head_commit = find_commit(root, name)
    now = datetime.fromtimestamp(app.adapters.world.now(), UTC)
    since = now - timedelta(days=request.days)
    commits = [commit for commit in list_commits(root, head_commit, since) if commit.parent]
    head = take_revision(app.trees, root, name, head_commit)
    changes: list[MergedChange] = []
    if commits:
        lend_once = cache(may_lend) if may_lend else None
        trees = {commit.id: commit.tree for commit in commits}
        examiner = _Examiner(app, path, root, request, head, trees, lend_once)
        end_time = None if request.minutes is None else asyncio.get_running_loop().time() + 60 * request.minutes
        for number, commit in enumerate(commits, 1):
            announce = partial(_report_change, report, f"change {number:,} of {len(commits):,}")
            changes.append(await examiner.examine(commit, end_time, announce))
    return _conclude(root, request, head.version, since, changes)


def _conclude(
    root: Path, request: HistoryRequest, head: CodeVersion, since: datetime, changes: Sequence[MergedChange]
) -> ChangeHistory:
    counts = count_changes(changes)
    is_cut = (ask_git(root, "rev-parse", "--is-shallow-repository") or b"").strip() == b"true"
    return ChangeHistory(
        redstart=version("redstart"),
        repo=root.name,
        head=head,
        since=since.date().isoformat(),
        days=request.days,
        level=request.level,
        exit_code=history_exit_code(counts),
        summary=tuple(summarize(counts, request.days, request.minutes, is_cut=is_cut)),
        counts=counts,
        authors=tuple(group_by_author(changes)),
        agents=tuple(group_by_agent(changes)),
        changes=tuple(changes),
    )


def _report_change(report: Callable[[Progress], None], change: str, progress: Progress) -> None:
    activity = f"{change}: {progress.activity}" if progress.activity else change
    report(progress._replace(activity=activity))


class _Examiner:
    """Verifies commits, and keeps the verdicts by what they depend on."""

    def __init__(
        self,
        app: AppContext,
        path: Path,
        root: Path,
        request: HistoryRequest,
        head: Revision,
        trees: Mapping[str, str],
        may_lend: MayLend | None,
    ) -> None:
        """`trees` are the trees of known commits.

        Raises `ConfigError` if the tests of the head cannot be determined.
        """
        self._app, self._path, self._root, self._trees, self._may_lend = app, path, root, trees, may_lend
        self._request = VerifyRequest(
            level=request.level,
            command=request.suite.command,
            junit=request.suite.junit,
            tests=request.tests,
            python=request.suite.python,
            mutants=0,
            reuses_head=True,
            lists_untested=True,
        )
        choose = partial(choose_changed_suite, "verify --history", ())
        specs = create_specs(app, path, request.suite, Revisions(head, head), choose, may_lend)
        folder = path.resolve().relative_to(root).as_posix()
        self._setup = compute_setup_key(app.adapters.blobs, specs.new, folder, request.level.value, *request.tests)
        self._files = KeptFiles(find_tenant_folder(app.settings.home, app.settings.tenant) / FOLDER, MOST_KEPT)
        self._last = head

    async def examine(
        self, commit: HistoryCommit, end_time: float | None, report: Callable[[Progress], None]
    ) -> MergedChange:
        """Return what the verification of the commit shows: what was kept, or what a new one finds in time."""
        change = MergedChange(
            commit=commit.id,
            date=commit.date,
            subject=commit.subject,
            author=commit.author.name or commit.author.address,
            bot=commit.author.is_bot,
            agents=commit.agents,
        )
        key = self._compute_key(commit)
        result = self._find_kept(key)
        if result is None:
            if end_time is not None and asyncio.get_running_loop().time() >= end_time:
                return change
            report(Progress("", 0, STEP))
            try:
                result = await finish_by(end_time, self._verify(commit, report))
            except ConfigError as error:
                return change.model_copy(update={"end": VerificationEnd.environment, "reason": str(error)})
            if result is None:
                return change
            if key:
                self._files.save(key, result.model_dump_json())
        return _describe_result(change, result)

    async def _verify(self, commit: HistoryCommit, report: Callable[[Progress], None]) -> Verification:
        head, base = self._take(commit.id), self._take(commit.parent)
        revisions = Revisions(base, head)
        return await verify_revisions(
            self._app, self._path, revisions, self._request, report=report, may_lend=self._may_lend
        )

    def _take(self, commit: str) -> Revision:
        if self._last.version.commit != commit:
            self._last = take_revision(self._app.trees, self._root, commit[:10], commit, self._last.snapshot)
        return self._last

    def _compute_key(self, commit: HistoryCommit) -> str:
        """Return the key of the verdict; empty if it is not kept because services take part in it."""
        base_tree = self._trees.get(commit.parent) or _find_tree(self._root, commit.parent)
        known = " ".join((self._setup, base_tree, commit.tree))
        return hashlib.sha256(known.encode()).hexdigest()[:32] if self._setup and base_tree else ""

    def _find_kept(self, key: str) -> Verification | None:
        text = self._files.find(key) if key else None
        try:
            return Verification.model_validate_json(text) if text else None
        except ValidationError:
            return None


def _find_tree(root: Path, commit: str) -> str:
    return (ask_git(root, "rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}") or b"").decode().strip()


def _describe_result(change: MergedChange, result: Verification) -> MergedChange:
    has_source = any(file.role in CODE_ROLES for file in result.files)
    kinds = (*_AGAINST, ClaimKind.green_without) if has_source else _AGAINST
    return change.model_copy(
        update={
            "end": result.end,
            "reason": f"{result.reason}: {result.remedy}" if is_outage(result.end) and result.remedy else result.reason,
            "no_test_ran": all(file.role in NO_TESTS_READ for file in result.files),
            "claims": tuple(result.list_claims(kinds)),
            "untested": result.untested,
        }
    )
