"""No sandbox at all, for the positive control: stopping an attack means something only if the attack works.

It runs as an ordinary user in a control group limited to 500 processes and 2 GB, on a disk of 400 MB.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from yard import ORDINARY, Yard, as_ordinary

from redstart.core.shell import Completed, Execution, ExitCause
from redstart.ports.sandbox.exchange import placed

MOST_PROCESSES = 500
MOST_MEMORY = 2 << 30
MOST_OUTPUT = 250 << 20
LONGER = 5.0
"""Seconds beyond the allowed time after which an attack has shown that nothing ends it."""
CGROUPS = Path("/sys/fs/cgroup")


class SafetyGroup:
    """A control group of version 1 below our own; `close` kills all its processes. Raises `OSError` without cgroups."""

    def __init__(self, name: str) -> None:
        ours = {
            kind: path.lstrip("/")
            for _, kinds, path in (line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines())
            for kind in kinds.split(",")
        }
        self.folders = [CGROUPS / kind / ours[kind] / name for kind in ("pids", "memory")]
        for folder in self.folders:
            folder.mkdir()
        (self.folders[0] / "pids.max").write_text(str(MOST_PROCESSES))
        (self.folders[1] / "memory.limit_in_bytes").write_text(str(MOST_MEMORY))

    def entering(self) -> list[str]:
        """Build the prefix that starts a command in the group."""
        enter = "; ".join(f"echo 0 > '{folder}/cgroup.procs'" for folder in self.folders)
        return ["/bin/sh", "-ec", f'{enter}; exec "$@"', "sh"]

    def processes(self) -> list[int]:
        return [int(line) for line in (self.folders[0] / "cgroup.procs").read_text().split()]

    def close(self) -> None:
        """Kill until no process is left, since they may fork meanwhile, and remove the group."""
        over = time.monotonic() + 10
        while (found := self.processes()) and time.monotonic() < over:
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)
        for folder in self.folders:
            while time.monotonic() < over:
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.005)


class Bare:
    """Runs a command with the rights of an ordinary user. Its leftovers stay until `close` for inspection."""

    tier = "bare"

    def __init__(self, yard: Yard, secret: str) -> None:
        self._secret = secret
        self._folder = yard.disk / f"bare-{secret[-8:]}"
        self._group = SafetyGroup(f"redstart-attacks-{os.getpid()}")

    async def run(self, execution: Execution) -> Completed:
        return await asyncio.to_thread(self._run, execution)

    def _run(self, execution: Execution) -> Completed:
        inward, outward, work = (self._folder / name for name in ("in", "out", "work"))
        for folder in (self._folder, inward, outward, work):
            folder.mkdir()
            os.chown(folder, ORDINARY, ORDINARY)
        for name, text in execution.files_in.items():
            (inward / name).write_text(text)
        given = {name: placed(value, str(inward), str(outward)) for name, value in execution.variables.items()}
        variables = {"PATH": os.environ["PATH"], "HOME": str(self._folder), "TMPDIR": str(work), **given}
        variables |= {"AGENT_KEY": self._secret, "ATTACK_BARE": "yes"}
        argv = [placed(each, str(inward), str(outward)) for each in execution.argv]
        patience = execution.limits.wall + LONGER
        began = time.monotonic()
        printed = self._folder / "printed"
        with printed.open("wb") as sink:
            started = subprocess.Popen(
                [*self._group.entering(), *as_ordinary(), *argv],
                cwd=work,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.wait(patience)
        if started.poll() is None:
            started.kill()
            started.wait()
        files = {name: self._naively(outward / name, patience) for name in execution.collect}
        with printed.open("rb") as file:
            output = file.read(MOST_OUTPUT).decode(errors="replace")
        return Completed(
            exit_code=max(started.returncode, 0),
            cause=ExitCause.ok if started.returncode == 0 else ExitCause.failed,
            output=output,
            files=files,
            wall=time.monotonic() - began,
        )

    def _naively(self, path: Path, patience: float) -> str:
        """Read a file naively: follow links and wait until the time limit."""
        command = ["timeout", str(patience), "head", "-c", str(MOST_OUTPUT), str(path)]
        variables = {"PATH": os.environ["PATH"], "AGENT_KEY": self._secret}
        return subprocess.run(command, env=variables, capture_output=True, check=False).stdout.decode(errors="replace")

    def survivors(self) -> list[int]:
        """List the processes that are still in the group, whatever their names."""
        return self._group.processes()

    def left(self) -> Path:
        return self._folder

    def close(self) -> None:
        self._group.close()
        subprocess.run(["chmod", "-R", "u+rwx", str(self._folder)], capture_output=True, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)
