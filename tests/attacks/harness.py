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
from watch import Watch, read_status, wait_for_survivors
from yard import Stage, Yard, find_python, fingerprint, iter_tree, may_bound, open_stage

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
        return {item.partition(":")[0] for item in self.evidence}

    @property
    def escaped(self) -> bool:
        return bool(self.evidence)

    @property
    def in_vain(self) -> str:
        """Why the attack never ran: something that it needs is missing. Empty if it ran."""
        if self.completed is None:
            return ""
        missing = next((error_name for error_name in VAIN if error_name in self.completed.output), "")
        return missing or ("it could not be started" if self.completed.exit_code in (126, 127) else "")


def play(attack: Attack, backend: str, testbed: Yard) -> Outcome:
    """Play an attack in its own surroundings. Raises `SandboxUnavailable` if the backend is not available.

    Raises `ValueError` for an attack that must not run without a sandbox or that cannot be bounded here.
    """
    if backend == BARE and (attack.bare == "untried" or not may_bound()):
        raise ValueError(f"{attack.name} must not be run without a sandbox here")
    if attack.evidence != "terminal":
        outcome = play_here(attack, backend, testbed)
        # A busy machine can make anything late once; an attack that defeats the time limit does so again.
        return play_here(attack, backend, testbed) if outcome.kinds == {"time"} and backend != BARE else outcome
    evidence, survivors, seconds = in_terminal(backend, attack.name, testbed.folder)
    return Outcome(attack, backend, tuple(evidence), survivors, seconds, None)


def play_here(attack: Attack, backend: str, testbed: Yard) -> Outcome:
    """Play an attack with the terminal of this process, if any."""
    with open_stage(testbed.folder / f"s{time.monotonic_ns()}") as surroundings, _restore_settings() as changed:
        host_facts = _read_host_facts()
        with _set_agent_secret(surroundings), _open_sandbox(backend, testbed, surroundings) as sandbox:
            execution = request(attack, testbed, surroundings)
            watch = Watch(surroundings.token, surroundings.agent.pid, testbed.disk)
            began, stolen = time.monotonic(), _read_steal_time()
            with watch:
                completed = asyncio.run(_run_bounded(sandbox, execution))
                stolen_seconds = _read_steal_time() - stolen
                seconds = time.monotonic() - began - stolen_seconds
                if attack.name.startswith("survivors/time_bomb"):
                    time.sleep(AFTERWARDS)
                watch.measure()
            survivors = sandbox.list_survivors() if isinstance(sandbox, Bare) else wait_for_survivors(watch)
            watch.close()
            evidence = [
                *_check_limits(
                    watch, completed, seconds - (CONTAINER if backend.startswith("docker") else 0.0), stolen_seconds
                ),
                *(
                    [f"survive: {', '.join(read_status(pid).get('Name', '?') for pid in survivors)}"]
                    if survivors
                    else []
                ),
                *_check_watch(watch),
                *_check_output(surroundings, host_facts, completed),
                *_check_host(surroundings, sandbox, testbed),
                *(f"setting: {name}" for name in changed()),
            ]
            claims_success = completed is not None and f"REACHED {surroundings.token}" in completed.output
            if claims_success and backend not in OWN_KERNEL:
                evidence.append("word: it says so")
            return Outcome(attack, backend, tuple(evidence), len(survivors), seconds, completed)


def request(attack: Attack, testbed: Yard, surroundings: Stage) -> Execution:
    environment = Environment(mount=str(surroundings.repo), python=find_python(), home=str(surroundings.home))
    return Execution(
        argv=(*COMMANDS[attack.path.suffix], f"{IN}/{attack.file}"),
        snapshot=testbed.snapshot,
        environment=environment,
        limits=LIMITS,
        variables={**surroundings.build_variables(), "ATTACK_IN": IN, "ATTACK_OUT": OUT, "ATTACK_BARE": ""},
        files_in=attack.files,
        collect=("result", "sub/secret.txt"),
    )


async def _run_bounded(sandbox: Sandbox, execution: Execution) -> Completed | None:
    """Run the execution; return None if it never ends."""
    try:
        async with asyncio.timeout(HUNG):
            return await sandbox.run(execution)
    except TimeoutError:
        return None


def _read_steal_time() -> float:
    """Return the steal time in seconds, averaged over processors: the hypervisor did not run this machine then."""
    processors = [line.split() for line in Path("/proc/stat").read_text().splitlines() if line.startswith("cpu")][1:]
    return sum(int(fields[8]) for fields in processors) / os.sysconf("SC_CLK_TCK") / len(processors)


def _check_limits(watch: Watch, completed: Completed | None, seconds: float, stolen_seconds: float) -> Generator[str]:
    if watch.processes > LIMITS.processes + HELPERS:
        yield f"processes: {watch.processes}"
    if watch.memory > LIMITS.memory * SLACK:
        yield f"memory: {watch.memory >> 20} MB"
    if watch.disk > LIMITS.disk * SLACK:
        yield f"disk: {watch.disk >> 20} MB"
    if watch.inodes > LIMITS.inodes * SLACK:
        yield f"inodes: {watch.inodes}"
    if completed is None or max(seconds, completed.wall - stolen_seconds) > LIMITS.wall + LATE:
        yield f"time: {seconds:.1f} s"
    if completed is not None:
        lengths = len(completed.output), *(len(text) for text in completed.files.values())
        if lengths[0] > LIMITS.output + 1000 or max(lengths) > 65 << 20:
            yield f"output: {max(lengths)} characters"


def _check_watch(watch: Watch) -> Generator[str]:
    for kind in sorted(watch.descriptors):
        yield f"descriptor: {kind}"
    if watch.nested:
        yield "namespace: of a user"
    if watch.traced:
        yield "trace: the agent"
    if watch.raised:
        yield "privilege: of another user"


def _check_output(surroundings: Stage, facts: dict[str, list[str]], completed: Completed | None) -> Generator[str]:
    texts = [] if completed is None else [completed.output, *completed.files.values()]
    everything_out = "\n".join(text[: 2 << 20] for text in texts)
    for kind, canary in surroundings.canaries.items():
        if canary in everything_out:
            yield f"read: {kind}"
    for kind, lines in facts.items():
        if any(line in everything_out for line in lines):
            yield f"{kind}: of the host"
    own_variable = max(Path("/proc/self/environ").read_text(errors="replace").split("\0"), key=len)
    if any(own_variable in text for text in (completed.files.values() if completed else ())):
        yield "read: the reader's own variables"


def _check_host(surroundings: Stage, sandbox: Sandbox, testbed: Yard) -> Generator[str]:
    for name in surroundings.list_contacts():
        yield f"contact: {name}"
    after = fingerprint(surroundings.home, surroundings.outside)
    if changed_paths := {
        path for path in {*after, *surroundings.before} if after.get(path) != surroundings.before.get(path)
    }:
        yield f"write: {len(changed_paths)} paths"
    if surroundings.read_agent_state() != surroundings.agent_before:
        yield "harm: the agent"
    yield from _check_leftovers(surroundings, sandbox, testbed)
    for folder in SYSTEM:
        for path in Path(folder).glob(f"*{surroundings.token}"):
            path.unlink()
            yield f"system: {folder}"
    if _remove_segment(surroundings.key):
        yield "ipc: a segment"


def _check_leftovers(surroundings: Stage, sandbox: Sandbox, testbed: Yard) -> Generator[str]:
    if isinstance(sandbox, Bare):
        places = [sandbox.get_folder(), surroundings.outside]
    else:
        places = [surroundings.folder, *testbed.list_leftovers()]
        for path in testbed.list_leftovers():
            yield f"leave: {path.name}"
    for path in (entry for place in places for entry in iter_tree(place)):
        with contextlib.suppress(OSError):
            mode = path.lstat().st_mode
            is_device = stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
            capable = stat.S_ISREG(mode) and "security.capability" in os.listxattr(path, follow_symlinks=False)
            if is_device or capable or (stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID)):
                yield f"leave: {path.name} {stat.filemode(mode)}"


def _remove_segment(key: int) -> bool:
    """Remove the shared memory segment of an attack from the host; return whether it was there."""
    libc = ctypes.CDLL(None)
    segment_id = libc.shmget(ctypes.c_int(key), 0, 0)
    return segment_id >= 0 and libc.shmctl(segment_id, 0, None) == 0


def _read_host_facts() -> dict[str, list[str]]:
    """Read facts that are known only on the host."""
    facts: dict[str, list[str]] = {"shadow": [], "machine": []}
    for kind, path in (("shadow", "/etc/shadow"), ("machine", "/etc/machine-id")):
        with contextlib.suppress(OSError):
            facts[kind] = [line for line in Path(path).read_text().splitlines() if len(line) > 8]
    facts["interface"] = [f"'{name}'" for _, name in socket.if_nameindex() if name != "lo"]
    return facts


@contextlib.contextmanager
def _restore_settings() -> Generator:
    """Yield a function that lists changed kernel settings and restores each of them at once."""

    def read_settings() -> dict[str, str]:
        settings = {"hostname": socket.gethostname()}
        for path in SETTINGS:
            with contextlib.suppress(OSError):
                settings[path] = Path(path).read_text()
        return settings

    original = read_settings()

    def restore_changed() -> list[str]:
        names = [name for name, value in read_settings().items() if original.get(name) != value]
        for name in names:
            if name == "hostname":
                socket.sethostname(original[name])
            else:
                Path(name).write_text(original[name] or "\n")
        return names

    yield restore_changed
    restore_changed()


@contextlib.contextmanager
def _set_agent_secret(surroundings: Stage) -> Generator[None]:
    """Set the agent's own variable, which no process inside the sandbox may see."""
    os.environ["AGENT_KEY"] = surroundings.canaries["agent"]
    try:
        yield
    finally:
        del os.environ["AGENT_KEY"]


@contextlib.contextmanager
def _open_sandbox(backend: str, testbed: Yard, surroundings: Stage) -> Generator[Sandbox]:
    if backend != BARE:
        yield make(backend, testbed.trees, testbed.scratch)
        return
    bare_sandbox = Bare(testbed, surroundings.canaries["agent"])
    try:
        yield bare_sandbox
    finally:
        bare_sandbox.close()
