"""Says which lines of the project the red tests run, and how many of the green tests beside them do.

This file is run by the interpreter of the code under test, as a plugin that `redstart_pytest.py` beside it adds: with
nothing but the standard library and pytest, Python 3.8 or later. `spectrum_asked.json` says what is asked: the folder
of the project and the red tests. Those come first; when the time is up, what was seen until then is the answer. If no
test is red, every line counts that a test runs.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

ASKED = Path(__file__).resolve().parent / "spectrum_asked.json"
ANSWER = "spectrum.json"
NOT_THE_PROJECT = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
FREE_TOOLS = (3, 4)
"""Numbers of `sys.monitoring` that no kind of tool is meant to have."""

asked = {}
red = set()
began = time.monotonic()
colours = {}
"""Of each test that has ended: whether it was red."""
tests = [0, 0]
counts = {}
"""By file and line, how many green and how many red tests ran it; only what a red one ran, if there are any."""
seen = set()
names = {}


def shown(file):
    """The path of a file of the project from here; empty for any other."""
    if file not in names:
        path = os.path.realpath(file)
        own = path.startswith(asked["root"] + os.sep) and os.path.isfile(path)  # noqa: PTH113
        own = own and not any(part in path for part in NOT_THE_PROJECT)
        names[file] = os.path.relpath(path).replace(os.sep, "/") if own else ""
    return names[file]


class Traced:
    """Before Python 3.12."""

    def start(self):
        threading.settrace(self.entered)
        sys.settrace(self.entered)

    def stop(self):
        sys.settrace(None)
        threading.settrace(None)

    def entered(self, frame, _event, _value):
        return self.at_line if shown(frame.f_code.co_filename) else None

    def at_line(self, frame, event, _value):
        if event == "line":
            seen.add((frame.f_code.co_filename, frame.f_lineno))
        return self.at_line


class Monitored:
    """A line tells once in a test that it is run."""

    def __init__(self):
        self.tool = next((one for one in FREE_TOOLS if sys.monitoring.get_tool(one) is None), None)
        if self.tool is not None:
            sys.monitoring.use_tool_id(self.tool, "redstart")
            sys.monitoring.register_callback(self.tool, sys.monitoring.events.LINE, self.at_line)

    def start(self):
        if self.tool is not None:
            sys.monitoring.restart_events()
            sys.monitoring.set_events(self.tool, sys.monitoring.events.LINE)

    def stop(self):
        if self.tool is not None:
            sys.monitoring.set_events(self.tool, sys.monitoring.events.NO_EVENTS)

    def at_line(self, code, line):
        if shown(code.co_filename):
            seen.add((code.co_filename, line))
        return sys.monitoring.DISABLE


watch = Monitored() if hasattr(sys, "monitoring") else Traced()


def pytest_configure(config):
    asked.update(json.loads(ASKED.read_text(encoding="utf-8")))
    red.update(asked["red"])
    if hasattr(config.option, "dist"):  # of xdist: in one process, where the watch is
        config.option.dist = "no"
        config.option.tx = []


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items):
    yield
    items.sort(key=lambda item: item.nodeid not in red)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    seen.clear()
    watch.start()
    try:
        yield
    finally:
        watch.stop()
    is_red = colours.get(item.nodeid)
    if is_red is not None and is_red == (item.nodeid in red):
        add(is_red)
    if time.monotonic() - began > asked["seconds"]:
        item.session.shouldstop = "enough was seen"


def add(is_red):
    tests[is_red] += 1
    for file, line in {(shown(file), line) for file, line in seen}:
        if is_red or not red or (file, line) in counts:
            counts.setdefault((file, line), [0, 0])[is_red] += 1


def pytest_runtest_logreport(report):
    if report.failed:
        colours[report.nodeid] = True
    elif report.when == "call" and report.passed:
        colours.setdefault(report.nodeid, False)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if not counts:
        return
    most = sorted(counts.items(), key=lambda one: (one[1][0] - one[1][1], one[0]))[: asked["lines"]]
    files = {}
    for (file, line), (by_green, by_red) in sorted(most):
        files.setdefault(file, []).append([line, by_red, by_green])
    answer = {"red": tests[True], "green": tests[False], "files": files}
    Path(session.config.option.redstart_report, ANSWER).write_text(json.dumps(answer), encoding="utf-8")
