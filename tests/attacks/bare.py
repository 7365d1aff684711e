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
from redstart.ports.sandbox.files import fill_placeholders

MOST_PROCESSES = 500
MOST_MEMORY = 2 << 30
MOST_OUTPUT = 250 << 20
LONGER = 5.0
"""Seconds beyond the allowed time after which an attack has shown that nothing ends it."""
CGROUPS = Path("/sys/fs/cgroup")


class SafetyGroup:
    """A control group of version 1 below our own; `close` kills all its processes. Raises `OSError` without cgroups."""

    def __init__(self, name: str) -> None:
        own_groups = {
            kind: path.lstrip("/")
            for _, kinds, path in (line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines())
            for kind in kinds.split(",")
        }
        self.folders = [CGROUPS / kind / own_groups[kind] / name for kind in ("pids", "memory")]
        for folder in self.folders:
            folder.mkdir()
        (self.folders[0] / "pids.max").write_text(str(MOST_PROCESSES))
        (self.folders[1] / "memory.limit_in_bytes").write_text(str(MOST_MEMORY))

    def build_prefix(self) -> list[str]:
        """Build the prefix that starts a command in the group."""
        commands = "; ".join(f"echo 0 > '{folder}/cgroup.procs'" for folder in self.folders)
        return ["/bin/sh", "-ec", f'{commands}; exec "$@"', "sh"]

    def list_processes(self) -> list[int]:
        return [int(line) for line in (self.folders[0] / "cgroup.procs").read_text().split()]

    def close(self) -> None:
        """Kill until no process is left, since they may fork meanwhile, and remove the group."""
        deadline = time.monotonic() + 10
        while (pids := self.list_processes()) and time.monotonic() < deadline:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)
        for folder in self.folders:
            while time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.005)


class Bare:
    """Runs a command with the rights of an ordinary user. Its leftovers stay until `close` for inspection."""

    tier = "bare"

    def __init__(self, testbed: Yard, secret: str) -> None:
        self._secret = secret
        self._folder = testbed.disk / f"bare-{secret[-8:]}"
        self._group = SafetyGroup(f"redstart-attacks-{os.getpid()}")

    async def run(self, execution: Execution) -> Completed:
        return await asyncio.to_thread(self._run, execution)

    def _run(self, execution: Execution) -> Completed:
        input_folder, output_folder, work = (self._folder / name for name in ("in", "out", "work"))
        for folder in (self._folder, input_folder, output_folder, work):
            folder.mkdir()
            os.chown(folder, ORDINARY, ORDINARY)
        for name, text in execution.files_in.items():
            (input_folder / name).write_text(text)
        placed_variables = {
            name: fill_placeholders(value, str(input_folder), str(output_folder))
            for name, value in execution.variables.items()
        }
        variables = {"PATH": os.environ["PATH"], "HOME": str(self._folder), "TMPDIR": str(work), **placed_variables}
        variables |= {"AGENT_KEY": self._secret, "ATTACK_BARE": "yes"}
        argv = [fill_placeholders(argument, str(input_folder), str(output_folder)) for argument in execution.argv]
        timeout = execution.limits.wall + LONGER
        began = time.monotonic()
        printed = self._folder / "printed"
        with printed.open("wb") as output_file:
            process = subprocess.Popen(
                [*self._group.build_prefix(), *as_ordinary(), *argv],
                cwd=work,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output_file,
                stderr=output_file,
            )
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout)
        if process.poll() is None:
            process.kill()
            process.wait()
        files = {name: self._read_naively(output_folder / name, timeout) for name in execution.collect}
        with printed.open("rb") as file:
            output = file.read(MOST_OUTPUT).decode(errors="replace")
        return Completed(
            exit_code=max(process.returncode, 0),
            cause=ExitCause.ok if process.returncode == 0 else ExitCause.failed,
            output=output,
            files=files,
            wall=time.monotonic() - began,
        )

    def _read_naively(self, path: Path, timeout: float) -> str:
        """Read a file naively: follow links and wait until the time limit."""
        command = ["timeout", str(timeout), "head", "-c", str(MOST_OUTPUT), str(path)]
        variables = {"PATH": os.environ["PATH"], "AGENT_KEY": self._secret}
        return subprocess.run(command, env=variables, capture_output=True, check=False).stdout.decode(errors="replace")

    def list_survivors(self) -> list[int]:
        """List the processes that are still in the group, whatever their names."""
        return self._group.list_processes()

    def get_folder(self) -> Path:
        return self._folder

    def close(self) -> None:
        self._group.close()
        subprocess.run(["chmod", "-R", "u+rwx", str(self._folder)], capture_output=True, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)
