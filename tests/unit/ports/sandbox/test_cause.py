"""Each way in which an execution ends has its cause."""

from __future__ import annotations

import dataclasses

import pytest

from redstart.core.shell import ExitCause, SandboxLimits
from redstart.ports.sandbox.files import classify, exit_code
from redstart.ports.sandbox.launch import LaunchEnd

LIMITS = SandboxLimits(cpu=10)
TRACE = "Traceback (most recent call last):\n  File 'x.py', line 1\n"
NODE = (
    "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n" + "1: 0xb9c1f0 [node]\n" * 90
)


def create_launch_end(returncode: int, output: str = "", *, timed_out: bool = False, cpu: float = 1.0) -> LaunchEnd:
    return LaunchEnd(returncode, output.encode(), truncated=False, timed_out=timed_out, wall=1.0, cpu=cpu)


@pytest.mark.parametrize(
    ("returncode", "output", "cause"),
    [
        (0, "", "ok"),
        (0, TRACE + "MemoryError\n", "ok"),
        (1, "1 failed", "failed"),
        (127, "sh: 1: exec: nothing: not found", "failed"),
        (128, "fatal: not a git repository", "failed"),
        (255, "", "failed"),
        (200, "", "failed"),
        (-24, "", "cpu"),
        (152, "", "cpu"),
        (-25, "", "file_size"),
        (153, "", "file_size"),
        (1, TRACE + "OSError: [Errno 27] File too large\n", "file_size"),
        (1, "cat: write error: File too large\n", "file_size"),
        (1, "E       OSError: [Errno 27] File too large\n1 failed\n", "failed"),
        (1, TRACE + "MemoryError\n", "memory"),
        (1, TRACE + "MemoryError: nothing left\n\n", "memory"),
        (1, TRACE + "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 8 GiB\n", "memory"),
        (1, TRACE + "OSError: [Errno 12] Cannot allocate memory\n", "memory"),
        (3, "INTERNALERROR> MemoryError\n", "memory"),
        (1, "E       MemoryError\nFAILED test_a.py::test_b - MemoryError\n1 failed\n", "failed"),
        (1, TRACE + "MemoryError\n" + "long after that\n" * 1000, "failed"),
        (2, "tail: memory exhausted\n", "memory"),
        (1, TRACE + "OSError: [Errno 28] No space left on device: 'x'\n", "disk"),
        (1, "dd: error writing 'x': No space left on device\n", "disk"),
        (1, "Error: ENOSPC: no space left on device, write\n    at Object.writeSync\n", "disk"),
        (1, TRACE + "sqlite3.OperationalError: database or disk is full\n", "disk"),
        (1, TRACE + "AssertionError: expected: No space left on device\n", "failed"),
        (1, "E       OSError: [Errno 28] No space left on device\n1 failed\n", "failed"),
        (1, TRACE + "BlockingIOError: [Errno 11] Resource temporarily unavailable\n", "processes"),
        (1, TRACE + "RuntimeError: can't start new thread\n", "processes"),
        (2, "x.sh: 4: Cannot fork\n", "processes"),
        (254, "bash: fork: Resource temporarily unavailable\n", "processes"),
        (1, TRACE + "OSError: [Errno 28] x\n" + TRACE + "MemoryError\n", "memory"),
        (1, TRACE + "MemoryError\n" + TRACE + "OSError: [Errno 28] x\n", "disk"),
        (-9, "std::bad_alloc", "memory"),
        (137, "memory allocation of 1073741824 bytes failed\n", "memory"),
        (134, NODE, "memory"),
        (-6, "terminate called after throwing an instance of 'std::bad_alloc'\n", "memory"),
        (139, "Cannot allocate memory\n", "memory"),
        (139, "", "signal"),
        (-11, "", "signal"),
        (137, "", "signal"),
        (-15, "out of memory", "signal"),
        (143, "", "signal"),
        (-1, "", "signal"),
    ],
)
def test_exit_causes_are_classified(returncode: int, output: str, cause: str) -> None:
    assert classify(create_launch_end(returncode, output), LIMITS) is ExitCause(cause)


@pytest.mark.parametrize("returncode", [0, 1, -9, -24, 137])
def test_timeout_overrides_the_exit_code(returncode: int) -> None:
    assert classify(create_launch_end(returncode, "MemoryError", timed_out=True), LIMITS) is ExitCause.timeout


def test_kill_at_the_hard_processor_limit_is_classified_as_cpu() -> None:
    assert classify(create_launch_end(-9, cpu=10.9), LIMITS) is ExitCause.cpu
    assert classify(create_launch_end(-9, cpu=9.9), LIMITS) is ExitCause.signal
    assert classify(create_launch_end(-11, cpu=10.9), LIMITS) is ExitCause.signal


@pytest.mark.parametrize(("returncode", "code"), [(0, 0), (1, 1), (-9, 137), (137, 137), (-24, 152)])
def test_exit_codes_are_mapped(returncode: int, code: int) -> None:
    assert exit_code(returncode) == code


@pytest.mark.parametrize(
    ("returncode", "evidence", "cause"),
    [
        (0, {"killed_for_memory": 1}, "memory"),
        (-9, {"killed_for_memory": 1}, "memory"),
        (0, {"disk_full": True}, "ok"),
        (1, {"disk_full": True}, "disk"),
        (-7, {"disk_full": True}, "disk"),
        (0, {"refused_processes": 3}, "ok"),
        (1, {"refused_processes": 3}, "processes"),
        (-24, {"refused_processes": 3}, "cpu"),
        (-9, {"stop_cause": ExitCause.output, "killed_for_memory": 1}, "output"),
        (0, {"stop_cause": ExitCause.disk}, "disk"),
        (-9, {"stop_cause": ExitCause.processes}, "processes"),
    ],
)
def test_measured_evidence_overrides_the_exit_code(returncode: int, evidence: dict[str, object], cause: str) -> None:
    end = dataclasses.replace(create_launch_end(returncode), **evidence)
    assert classify(end, LIMITS) is ExitCause(cause)


def test_program_output_overrides_measured_evidence() -> None:
    end = dataclasses.replace(create_launch_end(1, TRACE + "MemoryError\n"), refused_processes=1, disk_full=True)
    assert classify(end, LIMITS) is ExitCause.memory
