"""Fails a test that uses more processor time than it may, and names the limit.

This file is run by the interpreter of the code under test, with nothing but its standard library and its pytest.

Three layers, since generated code may do anything: a timer of the process's own processor time interrupts Python code;
what was used is compared afterwards, so that swallowing the interruption, or a child process, does not help; and the
kernel ends a process that does not come back from code in C. The name of the test at hand is left in a file for that.
"""

import os
import resource
import signal
import sys
import threading
from pathlib import Path

import pytest

GRACE = 2
"""Seconds after which the kernel ends a process that did not heed the timer."""
AGAIN = 0.25
"""Seconds of processor time after which code that swallowed the interruption is interrupted again."""
RUNNING = "running.txt"


def used():
    """Seconds of processor time: of all threads, and of child processes that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class CpuLimit:
    def __init__(self, seconds, folder):
        self.seconds, self.folder = seconds, folder
        self.spent = {}
        self.soft, self.hard = resource.getrlimit(resource.RLIMIT_CPU)

    def message(self, item):
        return "%s used more than %d s of CPU (sandbox.test_cpu)" % (item.name, self.seconds)  # noqa: UP031

    def watch(self, item):
        """Around one phase of a test: all of them together may use what one test may."""
        before = self.spent.setdefault(item.nodeid, 0.0)
        Path(self.folder, RUNNING).write_text(item.name, encoding="utf-8")
        start = used()
        self.arm(item, max(self.seconds - before, 0.01))
        try:
            yield
        finally:
            self.disarm()
            self.spent[item.nodeid] = before + used() - start

    def arm(self, item, seconds):
        def interrupt(_number, _frame):
            pytest.fail(self.message(item))

        own = os.times()
        end = int(own.user + own.system + seconds) + GRACE + 1
        if self.soft == resource.RLIM_INFINITY or end < self.soft:
            resource.setrlimit(resource.RLIMIT_CPU, (end, self.hard))
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGPROF, interrupt)
            signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN)

    def disarm(self):
        if threading.current_thread() is threading.main_thread():
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CPU, (self.soft, self.hard))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        yield from self.watch(item)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item):
        yield from self.watch(item)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item):
        yield from self.watch(item)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item):
        outcome = yield
        report = outcome.get_result()
        if self.spent.get(item.nodeid, 0.0) > self.seconds and report.when != "teardown":
            said = self.message(item)
            if said not in str(report.longrepr or ""):
                report.outcome, report.longrepr = "failed", said

    def pytest_sessionfinish(self):
        Path(self.folder, RUNNING).unlink(missing_ok=True)


def pytest_configure(config):
    seconds, folder = config.option.redstart_test_cpu, config.option.redstart_report
    if seconds and folder and sys.platform != "win32":
        config.pluginmanager.register(CpuLimit(seconds, folder), "redstart_cpu_limit")
