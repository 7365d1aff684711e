"""Plays one attack on one sandbox and checks its effects on the host. The program's own claim counts least."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import socket
import stat
import time
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from backends import BARE, OWN_KERNEL, make
from bare import Bare
from catalogue import COMMANDS, Attack
from in_terminal import in_terminal
from watch import Watch, status, still_alive
from yard import Stage, Yard, everything, fingerprint, may_bound, python3, stage

from redstart.core.shell import IN, OUT, Completed, Environment, Execution, SandboxLimits
from redstart.ports.sandbox.port import Sandbox

LIMITS = SandboxLimits(
    **{"wall": 4.0, "cpu": 3, "memory": 512 << 20, "file_size": 16 << 20, "output": 100_000, "flood": 32 << 20},
    **{"processes": 64, "disk": 64 << 20, "inodes": 10_000, "cpus": 1.0},
)
HELPERS = 16
"""Processes of the sandbox itself that carry the token too."""
SLACK = 1.2
"""Tolerance above a limit: the host also counts pages and helpers that the attack does not cause."""
LATE = 4.0
"""Seconds beyond the allowed time within which the execution must end, on a busy machine."""
CONTAINER = 12.0
"""Additional seconds to start and remove a container, on a busy machine."""
HUNG = 30.0
AFTERWARDS = 1.0
"""Seconds to wait for a time bomb."""
VAIN = ("ModuleNotFoundError", "SyntaxError", "NameError", "KeyError", "ERR_MODULE_NOT_FOUND", "Cannot find module")
"""Errors of a program that never reached its attack."""
SETTINGS = (
    *("/proc/sys/kernel/core_pattern", "/proc/sys/fs/lease-break-time", "/sys/kernel/uevent_helper"),
    *(f"/sys/fs/cgroup/{kind}/release_agent" for kind in ("rdma", "memory", "pids", "cpu")),
)
SYSTEM = (
    *("/usr/local/bin", "/usr/bin", "/etc", "/etc/cron.d", "/var/spool/cron", "/lib", "/usr/lib", "/opt", "/srv"),
    str(Path.home()),
)


class Outcome(NamedTuple):
    """The effects of one attack on one backend."""

    attack: Attack
    backend: str
    evidence: tuple[str, ...]
    """What the host saw, as `kind: detail`; empty if the attack was contained."""
    survivors: int
    seconds: float
    completed: Completed | None

    @property
    def kinds(self) -> set[str]:
        return {each.partition(":")[0] for each in self.evidence}

    @property
    def escaped(self) -> bool:
        return bool(self.evidence)

    @property
    def in_vain(self) -> str:
        """Why the attack never ran: something that it needs is missing. Empty if it ran."""
        if self.completed is None:
            return ""
        said = next((word for word in VAIN if word in self.completed.output), "")
        return said or ("it could not be started" if self.completed.exit_code in (126, 127) else "")


def play(attack: Attack, backend: str, yard: Yard) -> Outcome:
    """Play an attack in its own surroundings. Raises `SandboxUnavailable` if the backend is not available.

    Raises `ValueError` for an attack that must not run without a sandbox or that cannot be bounded here.
    """
    if backend == BARE and (attack.bare == "untried" or not may_bound()):
        raise ValueError(f"{attack.name} must not be run without a sandbox here")
    if attack.evidence != "terminal":
        outcome = play_here(attack, backend, yard)
        # A busy machine can make anything late once; an attack that defeats the time limit does so again.
        return play_here(attack, backend, yard) if outcome.kinds == {"time"} and backend != BARE else outcome
    evidence, survivors, seconds = in_terminal(backend, attack.name, yard.folder)
    return Outcome(attack, backend, tuple(evidence), survivors, seconds, None)


def play_here(attack: Attack, backend: str, yard: Yard) -> Outcome:
    """Play an attack with the terminal of this process, if any."""
    with stage(yard.folder / f"s{time.monotonic_ns()}") as surroundings, _kept_settings() as changed:
        before = _facts()
        with _agents_secret(surroundings), _sandbox(backend, yard, surroundings) as sandbox:
            execution = request(attack, yard, surroundings)
            watch = Watch(surroundings.token, surroundings.agent.pid, yard.disk)
            began, stolen = time.monotonic(), _stolen()
            with watch:
                completed = asyncio.run(_bounded(sandbox, execution))
                late = _stolen() - stolen
                seconds = time.monotonic() - began - late
                if attack.name.startswith("survivors/time_bomb"):
                    time.sleep(AFTERWARDS)
                watch.look()
            alive = sandbox.survivors() if isinstance(sandbox, Bare) else still_alive(watch)
            watch.close()
            found = [
                *_limits(watch, completed, seconds - (CONTAINER if backend.startswith("docker") else 0.0), late),
                *([f"survive: {', '.join(status(pid).get('Name', '?') for pid in alive)}"] if alive else []),
                *_seen(watch),
                *_came_out(surroundings, before, completed),
                *_host(surroundings, sandbox, yard),
                *(f"setting: {name}" for name in changed()),
            ]
            said = completed is not None and f"REACHED {surroundings.token}" in completed.output
            if said and backend not in OWN_KERNEL:
                found.append("word: it says so")
            return Outcome(attack, backend, tuple(found), len(alive), seconds, completed)


def request(attack: Attack, yard: Yard, surroundings: Stage) -> Execution:
    environment = Environment(mount=str(surroundings.repo), python=python3(), home=str(surroundings.home))
    return Execution(
        argv=(*COMMANDS[attack.path.suffix], f"{IN}/{attack.file}"),
        snapshot=yard.snapshot,
        environment=environment,
        limits=LIMITS,
        variables={**surroundings.variables(), "ATTACK_IN": IN, "ATTACK_OUT": OUT, "ATTACK_BARE": ""},
        files_in=attack.files,
        collect=("result", "sub/secret.txt"),
    )


async def _bounded(sandbox: Sandbox, execution: Execution) -> Completed | None:
    """Run the execution; return None if it never ends."""
    try:
        async with asyncio.timeout(HUNG):
            return await sandbox.run(execution)
    except TimeoutError:
        return None


def _stolen() -> float:
    """Return the steal time in seconds, averaged over processors: the hypervisor did not run this machine then."""
    processors = [line.split() for line in Path("/proc/stat").read_text().splitlines() if line.startswith("cpu")][1:]
    return sum(int(fields[8]) for fields in processors) / os.sysconf("SC_CLK_TCK") / len(processors)


def _limits(watch: Watch, completed: Completed | None, seconds: float, late: float) -> Generator[str]:
    if watch.processes > LIMITS.processes + HELPERS:
        yield f"processes: {watch.processes}"
    if watch.memory > LIMITS.memory * SLACK:
        yield f"memory: {watch.memory >> 20} MB"
    if watch.disk > LIMITS.disk * SLACK:
        yield f"disk: {watch.disk >> 20} MB"
    if watch.inodes > LIMITS.inodes * SLACK:
        yield f"inodes: {watch.inodes}"
    if completed is None or max(seconds, completed.wall - late) > LIMITS.wall + LATE:
        yield f"time: {seconds:.1f} s"
    if completed is not None:
        kept = len(completed.output), *(len(text) for text in completed.files.values())
        if kept[0] > LIMITS.output + 1000 or max(kept) > 65 << 20:
            yield f"output: {max(kept)} characters"


def _seen(watch: Watch) -> Generator[str]:
    for kind in sorted(watch.descriptors):
        yield f"descriptor: {kind}"
    if watch.nested:
        yield "namespace: of a user"
    if watch.traced:
        yield "trace: the agent"
    if watch.raised:
        yield "privilege: of another user"


def _came_out(surroundings: Stage, facts: dict[str, list[str]], completed: Completed | None) -> Generator[str]:
    texts = [] if completed is None else [completed.output, *completed.files.values()]
    everything_out = "\n".join(text[: 2 << 20] for text in texts)
    for kind, canary in surroundings.canaries.items():
        if canary in everything_out:
            yield f"read: {kind}"
    for kind, lines in facts.items():
        if any(line in everything_out for line in lines):
            yield f"{kind}: of the host"
    own = max(Path("/proc/self/environ").read_text(errors="replace").split("\0"), key=len)
    if any(own in text for text in (completed.files.values() if completed else ())):
        yield "read: the reader's own variables"


def _host(surroundings: Stage, sandbox: Sandbox, yard: Yard) -> Generator[str]:
    for name in surroundings.contacts():
        yield f"contact: {name}"
    after = fingerprint(surroundings.home, surroundings.outside)
    if different := {
        path for path in {*after, *surroundings.before} if after.get(path) != surroundings.before.get(path)
    }:
        yield f"write: {len(different)} paths"
    if surroundings.agent_state() != surroundings.agent_before:
        yield "harm: the agent"
    yield from _left(surroundings, sandbox, yard)
    for folder in SYSTEM:
        for path in Path(folder).glob(f"*{surroundings.token}"):
            path.unlink()
            yield f"system: {folder}"
    if _segment_removed(surroundings.key):
        yield "ipc: a segment"


def _left(surroundings: Stage, sandbox: Sandbox, yard: Yard) -> Generator[str]:
    if isinstance(sandbox, Bare):
        places = [sandbox.left(), surroundings.outside]
    else:
        places = [surroundings.folder, *yard.left()]
        for path in yard.left():
            yield f"leave: {path.name}"
    for path in (each for place in places for each in everything(place)):
        with contextlib.suppress(OSError):
            mode = path.lstat().st_mode
            special = stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
            capable = stat.S_ISREG(mode) and "security.capability" in os.listxattr(path, follow_symlinks=False)
            if special or capable or (stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID)):
                yield f"leave: {path.name} {stat.filemode(mode)}"


def _segment_removed(key: int) -> bool:
    """Remove the shared memory segment of an attack from the host; return whether it was there."""
    libc = ctypes.CDLL(None)
    found = libc.shmget(ctypes.c_int(key), 0, 0)
    return found >= 0 and libc.shmctl(found, 0, None) == 0


def _facts() -> dict[str, list[str]]:
    """Read facts that are known only on the host."""
    facts: dict[str, list[str]] = {"shadow": [], "machine": []}
    for kind, path in (("shadow", "/etc/shadow"), ("machine", "/etc/machine-id")):
        with contextlib.suppress(OSError):
            facts[kind] = [line for line in Path(path).read_text().splitlines() if len(line) > 8]
    facts["interface"] = [f"'{name}'" for _, name in socket.if_nameindex() if name != "lo"]
    return facts


@contextlib.contextmanager
def _kept_settings() -> Generator:
    """Yield a function that lists changed kernel settings and restores each of them at once."""

    def now() -> dict[str, str]:
        found = {"hostname": socket.gethostname()}
        for path in SETTINGS:
            with contextlib.suppress(OSError):
                found[path] = Path(path).read_text()
        return found

    before = now()

    def changed() -> list[str]:
        different = [name for name, value in now().items() if before.get(name) != value]
        for name in different:
            if name == "hostname":
                socket.sethostname(before[name])
            else:
                Path(name).write_text(before[name] or "\n")
        return different

    yield changed
    changed()


@contextlib.contextmanager
def _agents_secret(surroundings: Stage) -> Generator[None]:
    """Set the agent's own variable, which no process inside the sandbox may see."""
    os.environ["AGENT_KEY"] = surroundings.canaries["agent"]
    try:
        yield
    finally:
        del os.environ["AGENT_KEY"]


@contextlib.contextmanager
def _sandbox(backend: str, yard: Yard, surroundings: Stage) -> Generator[Sandbox]:
    if backend != BARE:
        yield make(backend, yard.trees, yard.scratch)
        return
    bare = Bare(yard, surroundings.canaries["agent"])
    try:
        yield bare
    finally:
        bare.close()
