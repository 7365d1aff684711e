"""A worker that executes commands until it is killed: `soak_worker.py BACKEND FOLDER SNAPSHOT TOKEN COUNT`.

It prints `begun` before each execution and `ended` after it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))

from backends import make
from yard import find_python

from redstart.core.change import Snapshot
from redstart.core.shell import OUT, Environment, Execution, SandboxLimits
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.repo.trees import GitTrees

DAEMON = "(setsid sleep 60 >/dev/null 2>&1 &) ; exit 0"
COMMANDS = (
    ("/bin/sh", "-c", "sleep 0.1"),
    ("/bin/sh", "-c", DAEMON),
    ("/bin/sh", "-c", f"head -c 1000000 /dev/zero > big; mkdir -p a/b/c; echo x > {OUT}/result"),
    ("/bin/sh", "-c", "for n in 1 2 3 4 5; do sleep 60 & done; trap '' TERM; sleep 0.2; exit 3"),
    ("/bin/sh", "-c", "sleep 60"),
)
LIMITS = SandboxLimits(wall=1.5, cpu=5, memory=256 << 20, processes=64, disk=32 << 20, inodes=2000)


async def run_worker(backend: str, folder: Path, snapshot: Snapshot, token: str, count: int) -> None:
    trees = GitTrees(folder / "snapshots", DirectoryBlobs(folder / "blobs"))
    sandbox = make(backend, trees, folder / "scratch")
    environment = Environment(mount=str(folder / "repo"), python=find_python())
    for number in range(count):
        print("begun", flush=True)
        await sandbox.run(
            Execution(
                argv=COMMANDS[number % len(COMMANDS)],
                snapshot=snapshot,
                environment=environment,
                limits=LIMITS,
                variables={"SOAK": token},
                collect=("result",),
            )
        )
        print("ended", flush=True)
    trees.close()


if __name__ == "__main__":
    name, place, taken, mark, executions = sys.argv[1:]
    asyncio.run(run_worker(name, Path(place), Snapshot.model_validate_json(taken), mark, int(executions)))
