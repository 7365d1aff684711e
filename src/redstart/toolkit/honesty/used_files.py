"""Files that tests read their expectations from: protected by their use, whatever they are called.

Where a patch changes data that lies in the repo, the targets run once with an audit hook that notes who opens what.
What a test file opens itself is put back to what it was; targets that then fail owe their green to it.
"""

from __future__ import annotations

from redstart.core.report import Evidence
from redstart.core.scripts import is_code
from redstart.core.shell import OUT
from redstart.toolkit.honesty.examine import Doubt, Examined, Green, Runs
from redstart.toolkit.honesty.verdict import green_among
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.detect import is_test_path
from redstart.toolkit.suites.request import importing, inside

CHECK = "files"
HOOK = "redstart_opened.py"
LOADED_AS = "sitecustomize.py"
"""By this name every interpreter loads it when it starts."""
OPENED = "opened.txt"


async def examine_files(green: Green, runs: Runs) -> Examined | None:
    """None where the patch changes nothing but code, or adds files."""
    data = [path for path in green.changed if not is_code(path) and runs.read(green.base, path) is not None]
    if not data or green.suite.is_node:
        return None
    asked = importing(runner.request(green.suite, green.environment, green.targets), (), green.environment)
    asked = asked._replace(
        variables={**asked.variables, "REDSTART_OPENED": f"{OUT}/{OPENED}"},
        files_in={**asked.files_in, LOADED_AS: inside(HOOK)},
        collect=(*asked.collect, OPENED),
    )
    completed = await runs.execute("files that tests read", green.patched, asked)
    readers = _readers(completed.files.get(OPENED, ""))
    shown = {green.suite.as_shown(path): path for path in data}
    read = {path: by for name, path in shown.items() if (by := readers.get(name))}
    count = len(set(green.targets))
    notes = tuple(f"{by} reads {path}, which the patch changes" for path, by in read.items())[:20]
    if not read:
        return Examined(Evidence(check=CHECK, targets=count, covered=count, runs=1, notes=notes))
    restored = runs.write(green.patched, {path: runs.read(green.base, path) for path in read})
    done = await runs.suite("with those files put back", restored, green.targets)
    failed = set(green.targets) - green_among(green.targets, done.cases)
    path, by = next(iter(read.items()))
    words = f"{by} reads {path}, which the patch changes; with that file as it was, {len(failed)} of its targets fail"
    doubts = (Doubt(words, refuses=False),) if failed else ()
    return Examined(Evidence(check=CHECK, targets=count, covered=count, runs=2, notes=notes), doubts)


def _readers(text: str) -> dict[str, str]:
    """Each file that a test file opened itself, with that test file."""
    rows = (line.split("\t") for line in text.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2 and is_test_path(row[1])}
