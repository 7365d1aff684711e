"""Makes pytest run every test and leave a report, whatever the repo's configuration says.

This file is run by the interpreter of the code under test, with nothing but its standard library and its pytest, Python
3.8 and pytest 6.2 or later. What selects tests for the project (`-k`, `-m`, `--deselect`) is left alone; what stops a
run early, chooses by an earlier run or shuffles is put aside. It does so by setting options once they are read: some of
them cannot be undone by an argument, and an argument is an error where its plugin is switched off.
"""

import os
import random
import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).resolve().parent)
ROOT = "REDSTART_ROOT"
ADDOPTS = "REDSTART_ADDOPTS"
MOST_REPORTS = 20
NOTHING_COLLECTED = 5

PUT_ASIDE = {
    # stops early, or does not run
    "maxfail": 0,
    "collectonly": False,
    "stepwise": False,
    "stepwise_skip": False,
    "usepdb": False,
    "trace": False,
    "continue_on_collection_errors": True,
    # chooses or sorts by an earlier run
    "lf": False,
    "failedfirst": False,
    "newfirst": False,
    # runs a red test again until it is green, which hides what depends on luck; forced, so that marks do not count
    "reruns": 0,
    "force_reruns": 0,
    # the report's text
    "tbstyle": "auto",
    "color": "no",
    # other plugins' own order
    "randomly_reorganize": False,
    "random_order_enabled": False,
}
RANDOM_ORDER = ("random_order_bucket", "random_order_seed")
"""Of pytest-random-order: each of them given switches it on, unless its value is marked as a default."""


def pytest_addoption(parser):
    group = parser.getgroup("redstart")
    group.addoption("--redstart-report", default="", help="folder to leave reports in")
    group.addoption("--redstart-only", default="", help="file with the ids to run; the others are left out")
    group.addoption("--redstart-order", default="", help="reversed or shuffled; as it is without")
    group.addoption("--redstart-test-cpu", default=0, type=int, help="seconds of processor time for each test")
    group.addoption("--redstart-seed", default=0, type=int, help="seed of every generator that takes one")


def is_worker(config):
    """Whether this is one of xdist's processes, which report to another."""
    return hasattr(config, "workerinput")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    option = config.option
    for name, value in PUT_ASIDE.items():
        if hasattr(option, name):
            setattr(option, name, value)
    for name in RANDOM_ORDER:
        if hasattr(option, name):
            default = "module" if name.endswith("bucket") else "0"
            setattr(option, name, "_default:" + default)
    if not is_worker(config):
        pin_seeds(option)
        add_report(config)
        add_watch(config)
        add_cpu_limit(config)
    restore_variables()


def pin_seeds(option):
    if hasattr(option, "randomly_seed"):
        option.randomly_seed = option.redstart_seed
    if getattr(option, "hypothesis_seed", "") is None:
        option.hypothesis_seed = str(option.redstart_seed)


def add_report(config):
    """A report of our own beside the project's, so that neither changes the other."""
    folder = config.option.redstart_report
    if folder:
        from _pytest.junitxml import LogXML  # noqa: PLC0415 (it is not always needed)

        report = LogXML(take_name(folder), "", "pytest", "no", "total", "xunit1", True)
        config.pluginmanager.register(report, "redstart_report")


def add_watch(config):
    """Where it was given along: what sees which lines a test runs."""
    if Path(HERE, "redstart_spectrum.py").is_file():
        import redstart_spectrum  # noqa: PLC0415 (it is not always there)

        config.pluginmanager.register(redstart_spectrum, "redstart_spectrum")


def add_cpu_limit(config):
    """Where it was given along: what fails a test that uses more processor time than it may."""
    if config.option.redstart_test_cpu:
        import redstart_cpu  # noqa: PLC0415 (it is not always there)

        config.pluginmanager.register(redstart_cpu, "redstart_cpu")


def take_name(folder):
    """A command may start pytest more than once, and at once: each has a file of its own."""
    for number in range(1, MOST_REPORTS + 1):
        path = Path(folder, "junit.xml" if number == 1 else "junit-%d.xml" % number)  # noqa: UP031
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            continue
        return str(path)
    raise pytest.UsageError("redstart reads at most %d runs of pytest in one command" % MOST_REPORTS)  # noqa: UP031


def restore_variables():
    """What the tests start themselves gets the variables that it would have without us."""
    before = os.environ.pop(ADDOPTS, None)
    if before:
        os.environ["PYTEST_ADDOPTS"] = before
    elif before is not None:
        os.environ.pop("PYTEST_ADDOPTS", None)
    sentinel = sys.modules.get("redstart_sentinel")
    root = os.environ.pop(ROOT, None)
    if sentinel and root:
        sentinel.ROOT = os.path.realpath(root)


@pytest.hookimpl(hookwrapper=True)
def pytest_collection_modifyitems(config, items):
    only = config.option.redstart_only
    if only:
        ids = set(Path(only).read_text(encoding="utf-8").splitlines())
        dropped = [item for item in items if not wanted(item.nodeid, ids)]
        if dropped:
            left_out = set(dropped)
            items[:] = [item for item in items if item not in left_out]
            config.hook.pytest_deselected(items=dropped)
    yield
    if config.option.redstart_order == "reversed":
        items.reverse()
    elif config.option.redstart_order == "shuffled":
        random.Random(config.option.redstart_seed).shuffle(items)  # noqa: S311


def wanted(nodeid, ids):
    """A wanted id may be a module's: one that could not be collected may be collected now."""
    return nodeid in ids or nodeid.partition("::")[0] in ids


def pytest_collection_finish():
    sys.path[:] = [one for one in sys.path if one != HERE]
    kept = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one and one != HERE]
    if kept:
        os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    else:
        os.environ.pop("PYTHONPATH", None)


def write_plugins(config):
    """The names of all that took part, so that two runs can be compared; what has only a number goes by its type."""
    names = set()
    for name, plugin in config.pluginmanager.list_name_plugin():
        if plugin is not None and not name.startswith("redstart_"):  # ours are not the same in each run
            kind = type(plugin)
            names.add("%s.%s" % (kind.__module__, kind.__name__) if name.isdigit() else name)  # noqa: UP031
    with open(os.path.join(config.option.redstart_report, "plugins.txt"), "a", encoding="utf-8") as file:  # noqa: PTH118, PTH123
        file.write("".join(sorted(name + "\n" for name in names)))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session, exitstatus):
    """One of several runs of a command in which no wanted test lies is no failure of the command."""
    if session.config.option.redstart_report and not is_worker(session.config):
        write_plugins(session.config)
    if session.config.option.redstart_only and exitstatus == NOTHING_COLLECTED and not is_worker(session.config):
        session.exitstatus = 0
