"""Files from which tests read their expectations: protected by their use, whatever their names.

If a patch changes data in the repo, or tests write files, the targets run once with an audit hook that records who
opens what. A file that a test file opens itself is restored; targets that then fail passed only because of its change.
A file that the tests write and then read, and did not write with the original code, contains output of the patched
code: a test that compares with it compares the code with itself.
"""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.report import CheckEvidence
from redstart.toolkit.honesty.examine import CheckOutcome, CheckRuns, GreenPatch, PatchDoubt
from redstart.toolkit.honesty.verdict.verdict import green_among
from redstart.toolkit.languages.registry import is_code, is_test_path, language_of_runner
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.request import loading
from redstart.toolkit.suites.view import TreeView

CHECK = "files"
HOOK = "redstart_opened.py"
OPENED = "opened.txt"
_WRITES = re.compile(rb"write_text|write_bytes|\.dump\(|open\([^)\n]*[\"'][wax]b?[\"']")


class OpenedFiles(NamedTuple):
    """The files that the targets opened, relative to the suite's directory."""

    readers: dict[str, str]
    """Each file that was read, and its reader: a test file if one read it."""
    written: set[str]


async def examine_files(green: GreenPatch, runs: CheckRuns) -> CheckOutcome | None:
    """Check the files that the targets read; None if the patch changes only code and nothing writes files."""
    data = [path for path in green.changed if not is_code(path) and runs.read(green.base, path) is not None]
    if added := [path for path in green.changed if path not in data] if not any(map(is_code, green.changed)) else []:
        return _only_added(green, added[0])
    language = language_of_runner(green.suite.runner)
    if not (language and language.loads_hooks) or not (data or _files_are_written(green, runs)):
        return None
    opened = await _opened(green, runs, green.patched)
    shown = {green.suite.as_shown(path): path for path in data}
    read = {path: by for name, path in shown.items() if is_test_path(by := opened.readers.get(name, ""))}
    count, ran, doubts = len(set(green.targets)), 1, list[PatchDoubt]()
    notes = [f"{by} reads {path}, which the patch changes" for path, by in read.items()]
    if read:
        ran += 1
        restored = runs.write(green.patched, {path: runs.read(green.base, path) for path in read})
        done = await runs.suite("with those files put back", restored, green.targets)
        if failed := set(green.targets) - green_among(green.targets, done.cases):
            doubts.append(PatchDoubt(f"{notes[0]}; with that file as it was, {len(failed)} of its targets fail", False))
    kept = TreeView(green.suite, runs.files(green.patched), partial(runs.read, green.patched)).kept
    if made := sorted((opened.readers.keys() & opened.written) - kept.keys()):
        ran += 1
        before = await _opened(green, runs, green.base)
        if new := [path for path in made if path not in before.written]:
            notes.append(f"{opened.readers[new[0]]} reads {new[0]}, which is written only with the patch")
            doubts.append(PatchDoubt(notes[-1], refuses=False))
    return CheckOutcome(
        CheckEvidence(check=CHECK, targets=count, covered=count, runs=ran, notes=tuple(notes[:20])), tuple(doubts)
    )


def _only_added(green: GreenPatch, path: str) -> CheckOutcome:
    count = len(set(green.targets))
    words = f"the patch changes no code: the tests pass because {path} is there"
    return CheckOutcome(
        CheckEvidence(check=CHECK, targets=count, covered=count, notes=(words,)), (PatchDoubt(words, refuses=False),)
    )


def _files_are_written(green: GreenPatch, runs: CheckRuns) -> bool:
    """Return whether the targets' files, their setup files or the patched code write files."""
    view = TreeView(green.suite, runs.files(green.patched), partial(runs.read, green.patched))
    files = {view.file_of(target) for target in green.targets} | {path for path in view.kept if "conftest" in path}
    files |= set(map(green.suite.as_shown, green.changed))
    return any(_WRITES.search(view.read(path) or b"") for path in files if path)


async def _opened(green: GreenPatch, runs: CheckRuns, tree: Snapshot) -> OpenedFiles:
    asked = loading(HOOK, OPENED, runner.request(green.suite, green.environment, green.targets), green.environment)
    completed = await runs.execute("files that tests read", tree, asked)
    rows = [row for line in completed.files.get(OPENED, "").splitlines() if len(row := line.split("\t")) == 3]
    read = sorted(((path, by) for path, by, how in rows if how == "read"), key=lambda row: is_test_path(row[1]))
    readers = dict(read)
    return OpenedFiles(readers, {path for path, _, how in rows if how == "written"})
