"""Files from which tests read their expected values. They are protected because tests use them, not by their names.

If a patch changes data in the repo, or tests write files, the targets run once with an audit hook that records who
opens what. A file that a test file opens itself is restored; targets that then fail passed only because of its change.
A file that the tests write and then read, and did not write with the original code, contains output of the patched
code: a test that compares with it compares the code with itself.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.report import CheckEvidence
from redstart.toolkit.honesty.examination import CheckOutcome, CheckRuns, GreenPatch, PatchDoubt
from redstart.toolkit.honesty.verdict.verdict import find_passing_targets
from redstart.toolkit.languages.registry import find_runner_language, is_code, is_test_path
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.request import add_startup_hook
from redstart.toolkit.suites.suite_directory import TreeView

CHECK = "files"
HOOK = "redstart_opened.py"
OPENED_FILES_NAME = "opened.txt"
_WRITE_CALL = re.compile(rb"write_text|write_bytes|\.dump\(|open\([^)\n]*[\"'][wax]b?[\"']")


class OpenedFiles(NamedTuple):
    """The files that the targets opened, relative to the suite's directory."""

    readers: dict[str, str]
    """Each file that was read, and its reader: a test file if one read it."""
    written_paths: set[str]


async def examine_files(patch: GreenPatch, runs: CheckRuns) -> CheckOutcome | None:
    """Check the files that the targets read; None if the patch changes only code and nothing writes files."""
    data = [path for path in patch.changed if not is_code(path) and runs.read(patch.base, path) is not None]
    if added := [path for path in patch.changed if path not in data] if not any(map(is_code, patch.changed)) else []:
        return _report_only_added(patch, added[0])
    language = find_runner_language(patch.suite.runner)
    if not (language and language.loads_hooks) or not (data or _has_file_writes(patch, runs)):
        return None
    opened_files = await _find_opened_files(patch, runs, patch.patched)
    shown_paths = {patch.suite.to_runner_path(path): path for path in data}
    read = {
        path: reader for name, path in shown_paths.items() if is_test_path(reader := opened_files.readers.get(name, ""))
    }
    count, run_count, doubts = len(set(patch.targets)), 1, list[PatchDoubt]()
    notes = [f"{reader} reads {path}, which the patch changes" for path, reader in read.items()]
    if read:
        run_count += 1
        restored = runs.write(patch.patched, {path: runs.read(patch.base, path) for path in read})
        suite_run = await runs.run_tests("with those files put back", restored, patch.targets)
        if failed := set(patch.targets) - find_passing_targets(patch.targets, suite_run.cases):
            doubts.append(PatchDoubt(f"{notes[0]}; with that file as it was, {len(failed)} of its targets fail", False))
    known_paths = TreeView.open(patch.suite, runs, patch.patched).snapshot_paths
    if created := sorted((opened_files.readers.keys() & opened_files.written_paths) - known_paths.keys()):
        run_count += 1
        baseline = await _find_opened_files(patch, runs, patch.base)
        if new := [path for path in created if path not in baseline.written_paths]:
            notes.append(f"{opened_files.readers[new[0]]} reads {new[0]}, which is written only with the patch")
            doubts.append(PatchDoubt(notes[-1], refuses=False))
    return CheckOutcome(
        CheckEvidence(check=CHECK, targets=count, covered=count, runs=run_count, notes=tuple(notes[:20])), tuple(doubts)
    )


def _report_only_added(patch: GreenPatch, path: str) -> CheckOutcome:
    count = len(set(patch.targets))
    message = f"the patch changes no code: the tests pass because {path} is there"
    return CheckOutcome(
        CheckEvidence(check=CHECK, targets=count, covered=count, notes=(message,)),
        (PatchDoubt(message, refuses=False),),
    )


def _has_file_writes(patch: GreenPatch, runs: CheckRuns) -> bool:
    """Return whether the targets' files, their setup files or the patched code write files."""
    view = TreeView.open(patch.suite, runs, patch.patched)
    files = {view.find_file(target) for target in patch.targets} | {
        path for path in view.snapshot_paths if "conftest" in path
    }
    files |= set(map(patch.suite.to_runner_path, patch.changed))
    return any(_WRITE_CALL.search(view.read(path) or b"") for path in files if path)


async def _find_opened_files(patch: GreenPatch, runs: CheckRuns, tree: Snapshot) -> OpenedFiles:
    request = add_startup_hook(
        HOOK, OPENED_FILES_NAME, runner.request(patch.suite, patch.environment, patch.targets), patch.environment
    )
    completed = await runs.execute("files that tests read", tree, request)
    rows = [
        row for line in completed.files.get(OPENED_FILES_NAME, "").splitlines() if len(row := line.split("\t")) == 3
    ]
    read = sorted(
        ((path, reader) for path, reader, mode in rows if mode == "read"), key=lambda row: is_test_path(row[1])
    )
    readers = dict(read)
    return OpenedFiles(readers, {path for path, _, mode in rows if mode == "written"})
