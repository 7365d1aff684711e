"""The contract of a sandbox's limits, and of the cause reported for each. `SandboxContract` contains it."""

from __future__ import annotations

import sys
import time

import pytest

from redstart.core.shell import OUT, TIGHT, ExitCause, SandboxLimits
from redstart.testing.contracts.fixtures import MEGABYTE, ContractFixtures, PythonProgram

BIG_FILE = "open('big', 'wb').write(bytes(11 << 20))"


class LimitsContract(ContractFixtures):
    """Each limit is enforced and reported with its own cause."""

    def test_cpu_time_is_limited(self, python: PythonProgram) -> None:
        completed = python("while True: pass", limits=SandboxLimits(wall=60, cpu=1))
        assert (completed.exit_code, completed.cause) == (152, ExitCause.cpu)
        assert 0.8 <= completed.cpu < 5

    def test_cpu_limit_ends_a_process_that_ignores_the_signal(self, python: PythonProgram) -> None:
        code = "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
        completed = python(code, limits=SandboxLimits(wall=60, cpu=1))
        assert (completed.exit_code, completed.cause) == (137, ExitCause.cpu)

    @pytest.mark.parametrize("item", ["bytearray(1 << 20)", "[None] * 1000", "'text' * 1000 + str(len(x))"])
    def test_memory_is_limited(self, python: PythonProgram, item: str) -> None:
        code = f"x = []\nwhile len(x) < 3_000_000: x.append({item})"
        completed = python(code, limits=SandboxLimits(wall=60, memory=200 * MEGABYTE))
        assert completed.exit_code != 0
        assert completed.cause is ExitCause.memory

    def test_reserved_address_space_does_not_count_as_memory(self, python: PythonProgram) -> None:
        code = "import mmap; mmap.mmap(-1, 4 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)"
        assert python(code, limits=SandboxLimits(wall=60, memory=200 * MEGABYTE)).cause is ExitCause.ok

    def test_file_size_is_limited(self, python: PythonProgram) -> None:
        code = "open('big', 'wb').write(bytes(3 << 20))"
        completed = python(code, limits=SandboxLimits(wall=60, file_size=MEGABYTE))
        assert (completed.exit_code, completed.cause) == (1, ExitCause.file_size)

    def test_file_size_limit_can_end_the_process_by_signal(self, python: PythonProgram) -> None:
        code = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); open('big', 'wb').write(bytes(3 << 20))"
        completed = python(code, limits=SandboxLimits(wall=60, file_size=MEGABYTE))
        assert (completed.exit_code, completed.cause) == (153, ExitCause.file_size)

    def test_file_below_the_size_limit_is_written(self, python: PythonProgram) -> None:
        code = "import os; open('big', 'wb').write(bytes(3 << 20)); print(os.path.getsize('big'))"
        assert python(code, limits=SandboxLimits(wall=60, file_size=4 * MEGABYTE)).output == "3145728\n"

    def test_wall_time_is_limited(self, python: PythonProgram) -> None:
        began = time.monotonic()
        completed = python.cut_short("print('on', flush=True); import time; time.sleep(60)", wall=1)
        assert (completed.exit_code, completed.cause, completed.output) == (137, ExitCause.timeout, "on\n")
        assert 1 <= completed.wall < 20
        assert time.monotonic() - began < 40

    def test_wall_time_limit_ends_a_process_that_ignores_signals(self, python: PythonProgram) -> None:
        code = "import signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(60)"
        assert python(code, limits=SandboxLimits(wall=1)).cause is ExitCause.timeout

    def test_no_core_is_dumped(self, python: PythonProgram) -> None:
        assert python("import resource; print(resource.getrlimit(resource.RLIMIT_CORE))").output == "(0, 0)\n"

    def test_used_time_is_reported(self, python: PythonProgram) -> None:
        completed = python("import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass")
        assert completed.cpu >= 0.3
        assert completed.wall >= 0.3

    def test_cpu_limit_covers_all_processes_together(self, python: PythonProgram) -> None:
        code = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
        completed = python(code, limits=SandboxLimits(wall=60, cpu=2))
        assert completed.cause is ExitCause.cpu

    def test_memory_limit_covers_all_processes_together(self, python: PythonProgram) -> None:
        # The kernel may kill a single process while the others finish by themselves, well before the time limit.
        code = "import os, time\nfor _ in range(3): os.fork()\nx = bytearray(os.urandom(1 << 20)) * 60\ntime.sleep(15)"
        completed = python(code, limits=SandboxLimits(wall=60, memory=200 * MEGABYTE))
        assert completed.cause is ExitCause.memory
        assert completed.wall < 30

    def test_refused_allocation_does_not_end_the_run(self, python: PythonProgram) -> None:
        code = "try: x = bytearray(1 << 40)\nexcept MemoryError: print('coped')"
        completed = python(code, limits=SandboxLimits(wall=60, memory=200 * MEGABYTE))
        assert (completed.cause, completed.output) == (ExitCause.ok, "coped\n")

    def test_peak_memory_is_reported(self, python: PythonProgram) -> None:
        completed = python("x = bytearray(os.urandom(1 << 20)) * 100 if (os := __import__('os')) else 0")
        assert 100 * MEGABYTE < completed.peak_memory < 1 << 30

    def test_process_count_is_limited(self, python: PythonProgram) -> None:
        code = "import os, time\nfor _ in range(200):\n  if os.fork() == 0: time.sleep(30); os._exit(0)\ntime.sleep(30)"
        completed = python(code, limits=SandboxLimits(wall=60, processes=40))
        assert (completed.exit_code != 0, completed.cause) == (True, ExitCause.processes)
        assert completed.wall < 30

    def test_process_count_below_the_limit_is_fine(self, python: PythonProgram) -> None:
        code = "import os\nfor _ in range(20):\n  if os.fork() == 0: os._exit(0)\nfor _ in range(20): os.wait()"
        assert python(code, limits=SandboxLimits(wall=60, processes=40)).cause is ExitCause.ok

    @pytest.mark.parametrize("place", [".", "/tmp"])  # noqa: S108
    def test_disk_usage_is_limited(self, python: PythonProgram, place: str) -> None:
        code = "import sys, tempfile, time\nplace = tempfile.gettempdir() if sys.argv[1] == '/tmp' else sys.argv[1]"
        code += "\nfor n in range(64): open(f'{place}/{n}', 'wb').write(bytes(1 << 20))\ntime.sleep(30)"
        limits = SandboxLimits(wall=60, disk=16 * MEGABYTE)
        completed = python(argv=(sys.executable, "-c", code, place), limits=limits)
        assert (completed.exit_code != 0, completed.cause) == (True, ExitCause.disk)

    def test_size_of_collected_output_is_limited(self, python: PythonProgram) -> None:
        code = "import sys, time\nfor n in range(64): open(f'{sys.argv[1]}/{n}', 'wb').write(bytes(1 << 20))"
        limits = SandboxLimits(wall=60, disk=16 * MEGABYTE)
        completed = python(argv=(sys.executable, "-c", f"{code}\ntime.sleep(30)", OUT), limits=limits, collect=("0",))
        assert (completed.exit_code != 0, completed.cause) == (True, ExitCause.disk)

    def test_number_of_files_is_limited(self, python: PythonProgram) -> None:
        code = "import os, time\nfor n in range(3000): os.close(os.open(f'f{n}', os.O_CREAT | os.O_WRONLY))"
        completed = python(f"{code}\ntime.sleep(30)", limits=SandboxLimits(wall=60, inodes=1000))
        assert (completed.exit_code != 0, completed.cause) == (True, ExitCause.disk)

    def test_full_disk_does_not_affect_the_next_execution(self, python: PythonProgram) -> None:
        code = "open('big', 'wb').write(bytes(12 << 20)); print('fits')"
        limits = SandboxLimits(wall=60, disk=16 * MEGABYTE)
        assert [python(code, limits=limits).output for _ in range(2)] == ["fits\n"] * 2

    def test_output_flood_ends_the_program(self, python: PythonProgram) -> None:
        code = "import sys\nwhile True: sys.stdout.write('y' * (1 << 16))"
        completed = python(code, limits=SandboxLimits(wall=60, output=10_000, flood=5 * MEGABYTE))
        assert (completed.exit_code, completed.cause, completed.truncated) == (137, ExitCause.output, True)
        assert len(completed.output) < 11_000

    def test_output_flood_is_reported_when_the_program_exits_itself(self, python: PythonProgram) -> None:
        code = "import sys; sys.stdout.write('y' * (6 << 20))"
        completed = python(code, limits=SandboxLimits(wall=60, output=10_000, flood=5 * MEGABYTE))
        assert (completed.cause, completed.truncated) == (ExitCause.output, True)

    def test_tight_profile_is_enough_for_a_snippet(self, python: PythonProgram) -> None:
        completed = python("import json, subprocess; print(subprocess.run(['echo', 'hello'], text=True))", limits=TIGHT)
        assert (completed.cause, completed.output.splitlines()[0]) == (ExitCause.ok, "hello")

    def test_tight_profile_limits_memory_and_file_size(self, python: PythonProgram) -> None:
        causes = [python(code, limits=TIGHT).cause for code in ("x = bytearray(300 << 20)", BIG_FILE)]
        assert causes == [ExitCause.memory, ExitCause.file_size]
