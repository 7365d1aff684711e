"""The contract of a sandbox's limits, and of the cause reported for each. `SandboxContract` contains it."""

from __future__ import annotations

import sys
import time

import pytest

from redstart.core.shell import OUT, TIGHT, ExitCause, SandboxLimits
from redstart.testing.contracts.ground import MEGABYTE, ContractFixtures, PythonProgram

BIG_FILE = "open('big', 'wb').write(bytes(11 << 20))"


class LimitsContract(ContractFixtures):
    """Each limit is enforced and reported with its own cause."""

    def test_processor_time_is_limited(self, python: PythonProgram) -> None:
        done = python("while True: pass", limits=SandboxLimits(wall=60, cpu=1))
        assert (done.exit_code, done.cause) == (152, ExitCause.cpu)
        assert 0.8 <= done.cpu < 5

    def test_processor_time_is_limited_for_who_ignores_the_signal(self, python: PythonProgram) -> None:
        code = "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
        done = python(code, limits=SandboxLimits(wall=60, cpu=1))
        assert (done.exit_code, done.cause) == (137, ExitCause.cpu)

    @pytest.mark.parametrize("item", ["bytearray(1 << 20)", "[None] * 1000", "'text' * 1000 + str(len(x))"])
    def test_memory_is_limited(self, python: PythonProgram, item: str) -> None:
        code = f"x = []\nwhile len(x) < 3_000_000: x.append({item})"
        done = python(code, limits=SandboxLimits(wall=60, memory=200 * MEGABYTE))
        assert done.exit_code != 0
        assert done.cause is ExitCause.memory

    def test_address_space_that_is_only_reserved_is_free(self, python: PythonProgram) -> None:
        code = "import mmap; mmap.mmap(-1, 4 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)"
        assert python(code, limits=SandboxLimits(wall=60, memory=200 * MEGABYTE)).cause is ExitCause.ok

    def test_the_size_of_a_file_is_limited(self, python: PythonProgram) -> None:
        code = "open('big', 'wb').write(bytes(3 << 20))"
        done = python(code, limits=SandboxLimits(wall=60, file_size=MEGABYTE))
        assert (done.exit_code, done.cause) == (1, ExitCause.file_size)

    def test_the_size_of_a_file_is_limited_by_a_signal(self, python: PythonProgram) -> None:
        code = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); open('big', 'wb').write(bytes(3 << 20))"
        done = python(code, limits=SandboxLimits(wall=60, file_size=MEGABYTE))
        assert (done.exit_code, done.cause) == (153, ExitCause.file_size)

    def test_a_file_below_the_limit(self, python: PythonProgram) -> None:
        code = "import os; open('big', 'wb').write(bytes(3 << 20)); print(os.path.getsize('big'))"
        assert python(code, limits=SandboxLimits(wall=60, file_size=4 * MEGABYTE)).output == "3145728\n"

    def test_the_clock_is_limited(self, python: PythonProgram) -> None:
        began = time.monotonic()
        done = python.cut_short("print('on', flush=True); import time; time.sleep(60)", wall=1)
        assert (done.exit_code, done.cause, done.output) == (137, ExitCause.timeout, "on\n")
        assert 1 <= done.wall < 20
        assert time.monotonic() - began < 40

    def test_the_clock_is_limited_for_who_ignores_signals(self, python: PythonProgram) -> None:
        code = "import signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(60)"
        assert python(code, limits=SandboxLimits(wall=1)).cause is ExitCause.timeout

    def test_no_core_is_dumped(self, python: PythonProgram) -> None:
        assert python("import resource; print(resource.getrlimit(resource.RLIMIT_CORE))").output == "(0, 0)\n"

    def test_time_used_is_told(self, python: PythonProgram) -> None:
        done = python("import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass")
        assert done.cpu >= 0.3
        assert done.wall >= 0.3

    def test_processor_time_is_limited_for_all_together(self, python: PythonProgram) -> None:
        code = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
        done = python(code, limits=SandboxLimits(wall=60, cpu=2))
        assert done.cause is ExitCause.cpu

    def test_memory_is_limited_for_all_together(self, python: PythonProgram) -> None:
        # The kernel may kill a single process while the others finish by themselves, well before the time limit.
        code = "import os, time\nfor _ in range(3): os.fork()\nx = bytearray(os.urandom(1 << 20)) * 60\ntime.sleep(15)"
        done = python(code, limits=SandboxLimits(wall=60, memory=200 * MEGABYTE))
        assert done.cause is ExitCause.memory
        assert done.wall < 30

    def test_who_copes_with_a_refused_allocation_is_fine(self, python: PythonProgram) -> None:
        code = "try: x = bytearray(1 << 40)\nexcept MemoryError: print('coped')"
        done = python(code, limits=SandboxLimits(wall=60, memory=200 * MEGABYTE))
        assert (done.cause, done.output) == (ExitCause.ok, "coped\n")

    def test_peak_memory_is_told(self, python: PythonProgram) -> None:
        done = python("x = bytearray(os.urandom(1 << 20)) * 100 if (os := __import__('os')) else 0")
        assert 100 * MEGABYTE < done.peak_memory < 1 << 30

    def test_processes_are_limited(self, python: PythonProgram) -> None:
        code = "import os, time\nfor _ in range(200):\n  if os.fork() == 0: time.sleep(30); os._exit(0)\ntime.sleep(30)"
        done = python(code, limits=SandboxLimits(wall=60, processes=40))
        assert (done.exit_code != 0, done.cause) == (True, ExitCause.processes)
        assert done.wall < 30

    def test_processes_below_the_limit(self, python: PythonProgram) -> None:
        code = "import os\nfor _ in range(20):\n  if os.fork() == 0: os._exit(0)\nfor _ in range(20): os.wait()"
        assert python(code, limits=SandboxLimits(wall=60, processes=40)).cause is ExitCause.ok

    @pytest.mark.parametrize("place", [".", "/tmp"])  # noqa: S108
    def test_the_disk_is_limited(self, python: PythonProgram, place: str) -> None:
        code = "import sys, tempfile, time\nplace = tempfile.gettempdir() if sys.argv[1] == '/tmp' else sys.argv[1]"
        code += "\nfor n in range(64): open(f'{place}/{n}', 'wb').write(bytes(1 << 20))\ntime.sleep(30)"
        limits = SandboxLimits(wall=60, disk=16 * MEGABYTE)
        done = python(argv=(sys.executable, "-c", code, place), limits=limits)
        assert (done.exit_code != 0, done.cause) == (True, ExitCause.disk)

    def test_what_is_left_for_collection_is_limited(self, python: PythonProgram) -> None:
        code = "import sys, time\nfor n in range(64): open(f'{sys.argv[1]}/{n}', 'wb').write(bytes(1 << 20))"
        limits = SandboxLimits(wall=60, disk=16 * MEGABYTE)
        done = python(argv=(sys.executable, "-c", f"{code}\ntime.sleep(30)", OUT), limits=limits, collect=("0",))
        assert (done.exit_code != 0, done.cause) == (True, ExitCause.disk)

    def test_the_number_of_files_is_limited(self, python: PythonProgram) -> None:
        code = "import os, time\nfor n in range(3000): os.close(os.open(f'f{n}', os.O_CREAT | os.O_WRONLY))"
        done = python(f"{code}\ntime.sleep(30)", limits=SandboxLimits(wall=60, inodes=1000))
        assert (done.exit_code != 0, done.cause) == (True, ExitCause.disk)

    def test_a_full_disk_does_not_outlive_its_execution(self, python: PythonProgram) -> None:
        code = "open('big', 'wb').write(bytes(12 << 20)); print('fits')"
        limits = SandboxLimits(wall=60, disk=16 * MEGABYTE)
        assert [python(code, limits=limits).output for _ in range(2)] == ["fits\n"] * 2

    def test_a_flood_of_output_is_ended(self, python: PythonProgram) -> None:
        code = "import sys\nwhile True: sys.stdout.write('y' * (1 << 16))"
        done = python(code, limits=SandboxLimits(wall=60, output=10_000, flood=5 * MEGABYTE))
        assert (done.exit_code, done.cause, done.truncated) == (137, ExitCause.output, True)
        assert len(done.output) < 11_000

    def test_a_flood_that_ends_by_itself(self, python: PythonProgram) -> None:
        code = "import sys; sys.stdout.write('y' * (6 << 20))"
        done = python(code, limits=SandboxLimits(wall=60, output=10_000, flood=5 * MEGABYTE))
        assert (done.cause, done.truncated) == (ExitCause.output, True)

    def test_the_tight_profile_is_enough_for_a_snippet(self, python: PythonProgram) -> None:
        done = python("import json, subprocess; print(subprocess.run(['echo', 'hello'], text=True))", limits=TIGHT)
        assert (done.cause, done.output.splitlines()[0]) == (ExitCause.ok, "hello")

    def test_the_tight_profile_is_tight(self, python: PythonProgram) -> None:
        causes = [python(code, limits=TIGHT).cause for code in ("x = bytearray(300 << 20)", BIG_FILE)]
        assert causes == [ExitCause.memory, ExitCause.file_size]
