"""Each test of generated code has a limit on CPU seconds; the message names the test and the setting."""

from __future__ import annotations

import pytest

from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment, ExitCause
from redstart.toolkit.languages.python.pytest import RUNNING
from redstart.toolkit.suites import runner

SUITE = Suite(runner="pytest")
TESTS = """
    import subprocess
    import sys

    import pytest

    SPIN = "import time\\nwhile time.process_time() < 1.4: pass"


    def spin(until=None):
        while True:
            pass


    @pytest.fixture
    def slow():
        spin()


    def test_quick():
        assert 1 + 1 == 2


    def test_spins():
        spin()


    def test_swallows_it():
        for _ in range(3):
            try:
                spin()
            except BaseException:
                pass


    def test_in_a_fixture(slow):
        pass


    def test_in_a_child():
        subprocess.run([sys.executable, "-c", SPIN], check=True)


    def test_quick_again():
        assert 2 + 2 == 4
    """


@pytest.mark.slow
def test_every_test_is_held_to_its_own_cpu_limit(execute, write, tmp_path, environment: Environment):
    root = write(tmp_path / "repo", {"test_it.py": TESTS, "pytest.ini": "[pytest]\n"})
    completed = execute(root, runner.request(SUITE, environment, test_cpu=1))
    cases = {case.id.rpartition("::")[2]: case for case in runner.read(SUITE, completed).cases}
    failing = {name for name, case in cases.items() if case.is_red}
    assert failing == {"test_spins", "test_swallows_it", "test_in_a_fixture", "test_in_a_child"}, completed.output
    for name in failing:
        assert f"{name} used more than 1 s of CPU (sandbox.test_cpu)" in cases[name].message
    assert len(cases) == 6


@pytest.mark.slow
def test_suite_that_cannot_be_imported_leaves_its_report(execute, write, tmp_path, environment: Environment):
    root = write(tmp_path / "repo", {"test_it.py": "import not_yet\n", "pytest.ini": "[pytest]\n"})
    completed = execute(root, runner.request(SUITE, environment, test_cpu=5))
    assert [case.outcome for case in runner.read(SUITE, completed).cases] == ["error"], completed.output


def test_nothing_is_watched_without_a_limit(environment: Environment):
    request = runner.request(SUITE, environment)
    assert not any("cpu" in argument for argument in (*request.argv, *request.files_in, *request.collect))


@pytest.mark.parametrize(("running", "phrase"), [("test_hangs", "test_hangs used more CPU"), ("", "processor time")])
def test_kernel_ends_code_that_does_not_return_and_the_test_is_named(running, phrase):
    files = {RUNNING: running} if running else {}
    completed = Completed(exit_code=152, cause=ExitCause.cpu, output="", files=files, wall=9.0)
    parsed = runner.read(SUITE, completed)
    assert (parsed.kind, parsed.cases) == ("timeout", [])
    assert phrase in parsed.fault
