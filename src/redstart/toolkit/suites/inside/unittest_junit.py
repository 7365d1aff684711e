r"""Runs a unittest suite and writes what happened as JUnit XML, with the attributes that pytest writes.

This file is run by the interpreter of the code under test, with nothing but its standard library, Python 3.8 or later:

    python unittest_junit.py --out junit.xml [--ids ids.txt] [--order reversed|shuffled [--seed N]] \
        [-- arguments of `python -m unittest`]

Without arguments it discovers from the current folder, and in `tests` and `test` where those are no packages, which
discovery would pass over. The exit code is 0 where all passed, 1 where some did not, 5 where no tests were found.

A test that did not run because its class or module could not be set up has that error, or that skip, as its own: so
each test has one id whether it runs or not.
"""

import argparse
import inspect
import os
import random
import re
import sys
import time
import traceback
import unittest
import warnings
from pathlib import Path
from xml.etree import ElementTree

ALL_PASSED, SOME_FAILED, NONE_FOUND = 0, 1, 5
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
FIXTURES = ("setUpClass", "tearDownClass", "setUpModule", "tearDownModule")
HOLDER = re.compile(r"^(%s) \((.+)\)$" % "|".join(FIXTURES))  # noqa: UP031


class Program(unittest.TestProgram):
    """unittest's own reading of its arguments and its discovery, without running anything: so `-f` has no effect."""

    def runTests(self):  # noqa: N802
        return None


def discover():
    """The suite, and what stopped discovery in a folder: (folder, traceback) pairs."""
    found, faults = [], []
    folders = [name for name in ("tests", "test") if Path(name).is_dir() and not Path(name, "__init__.py").exists()]
    for folder in [".", *folders]:
        try:
            # A loader of its own for each: a loader remembers its top-level folder.
            found.append(unittest.TestLoader().discover(folder, top_level_dir=folder))
        except ImportError:
            faults.append((folder, traceback.format_exc()))
    return unittest.TestSuite(found), faults


def flatten(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from flatten(one)
        elif one is not None:
            yield one


def identity(test):
    """The dotted class or module, and the name. A module that cannot be imported has a name only."""
    if type(test).__module__ == "unittest.loader":
        return "", getattr(test, "_testMethodName", str(test))
    whole = test.id() if hasattr(test, "id") else str(test)
    holder = HOLDER.match(whole)
    if holder:
        return holder.group(2), holder.group(1)
    classname, _, name = whole.rpartition(".")
    return classname, name


def dotted(place):
    return ".".join(part for part in place if part)


def source_file(test):
    try:
        return os.path.relpath(inspect.getsourcefile(type(test)) or "")
    except (TypeError, ValueError, OSError):
        return ""


class Filter:
    """Which tests are wanted: by id, by class or module, and the module that fails where a wanted test would be."""

    def __init__(self, ids):
        self.ids = {re.sub(r"\.(%s)$" % "|".join(FIXTURES), "", one) for one in ids}  # noqa: UP031
        self.above = {one[:end] for one in self.ids for end, char in enumerate(one) if char == "."}

    def wants(self, test):
        place = identity(test)
        whole = dotted(place)
        if not place[0] and whole in self.above:
            return True
        parts = whole.split(".")
        return any(".".join(parts[: end + 1]) in self.ids for end in range(len(parts)))


class Recorder(unittest.TestResult):
    """Keeps, for each test, its results in the order in which they came."""

    def __init__(self, tests):
        super().__init__()
        self.places = {identity(test): source_file(test) for test in tests}
        self.entries = {}
        self.seconds = {}
        self.blocked = []
        self.began = time.perf_counter()

    def startTest(self, test):  # noqa: N802
        super().startTest(test)
        self.began = time.perf_counter()

    def stopTest(self, test):  # noqa: N802
        super().stopTest(test)
        self.seconds[identity(test)] = time.perf_counter() - self.began

    def keep(self, place, tag, message, detail=""):
        self.entries.setdefault(place, []).append((tag, message, detail))
        if tag in ("failure", "error"):
            sys.stderr.write("%s: %s\n%s\n" % (tag.upper(), dotted(place), detail))  # noqa: UP031

    def keep_error(self, test, tag, err, about=""):
        place = identity(test)
        if type(test).__module__ == "unittest.loader":
            detail = str(err[1]).strip()
            message = detail.splitlines()[-1] if detail else "the module could not be loaded"
        else:
            message = "".join(traceback.format_exception_only(err[0], err[1])).strip()
            detail = self._exc_info_to_string(err, test).rstrip()
        detail = detail.replace('File "%s%s' % (os.getcwd(), os.sep), 'File "')  # noqa: PTH109, UP031
        detail = about + detail
        if place[1] in ("setUpClass", "setUpModule") and place not in self.places:
            self.blocked.append((place[0], tag, message, detail))
        else:
            self.keep(place, tag, message, detail)

    def addSuccess(self, test):  # noqa: N802
        self.keep(identity(test), "passed", "")

    def addFailure(self, test, err):  # noqa: N802
        self.keep_error(test, "failure", err)

    def addError(self, test, err):  # noqa: N802
        self.keep_error(test, "error", err)

    def addSkip(self, test, reason):  # noqa: N802
        place = identity(getattr(test, "test_case", test))
        if place[1] in ("setUpClass", "setUpModule") and place not in self.places:
            self.blocked.append((place[0], "skipped", reason, ""))
        else:
            self.keep(place, "skipped", reason)

    def addExpectedFailure(self, test, err):  # noqa: N802
        self.keep(identity(test), "skipped", "expected failure", str(err[1]))

    def addUnexpectedSuccess(self, test):  # noqa: N802
        self.keep(identity(test), "failure", "Unexpected success", "The test is marked as an expected failure.")

    def addSubTest(self, test, subtest, err):  # noqa: N802
        if err is not None:
            tag = "failure" if issubclass(err[0], test.failureException) else "error"
            self.keep_error(test, tag, err, "In subtest %s:\n" % subtest._subDescription())  # noqa: UP031

    @property
    def red(self):
        """How many tests failed."""
        return sum(1 for entries in self.entries.values() if any(tag in ("failure", "error") for tag, _, _ in entries))

    def pass_on_blocks(self):
        """Gives what stopped a class or a module to those of its tests that have no result of their own."""
        for owner, *entry in self.blocked:
            inside = [one for one in self.places if one not in self.entries and (one[0] + ".").startswith(owner + ".")]
            for place in inside or [(owner, "setUp")]:
                self.keep(place, *entry)


def clean(text):
    return NOT_XML.sub("\ufffd", text)


def write_report(path, recorder):
    suite = ElementTree.Element("testsuite", name="unittest", tests=str(len(recorder.entries)))
    for place, entries in recorder.entries.items():
        attributes = {"classname": place[0], "name": place[1], "file": recorder.places.get(place, "")}
        attributes = {name: clean(value) for name, value in attributes.items()}
        case = ElementTree.SubElement(suite, "testcase", attributes, time="%.3f" % recorder.seconds.get(place, 0.0))  # noqa: UP031
        told = [entry for entry in entries if entry[0] in ("failure", "error")]
        if not told and not any(entry[0] == "passed" for entry in entries):
            told = entries
        for tag, message, detail in told:
            ElementTree.SubElement(case, tag, message=clean(message)).text = clean(detail)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def ordered(suite, order, seed):
    """The tests in another order: by module and class one after another, so that each is still set up once."""
    modules = {}
    for test in flatten(suite):
        modules.setdefault(type(test).__module__, {}).setdefault(type(test), []).append(test)
    chance = random.Random(seed)  # noqa: S311

    def mixed(some):
        return list(some)[::-1] if order == "reversed" else chance.sample(list(some), len(some))

    groups = [group for classes in mixed(modules.values()) for group in mixed(classes.values())]
    return unittest.TestSuite([test for group in groups for test in mixed(group)])


def load(arguments):
    words = [word for word in arguments if word != "--"]
    if not words:
        return discover()
    return Program(module=None, argv=["python -m unittest", *words], exit=False).test, []


def add_options(parser):
    """What every caller of this file may ask for."""
    parser.add_argument("--out", required=True)
    parser.add_argument("--ids")
    parser.add_argument("--order", choices=("reversed", "shuffled"))
    parser.add_argument("--seed", type=int, default=0)


def sentinel():
    """The module that says where the project's packages come from; None where that is not wanted."""
    if "REDSTART_SENTINEL" not in os.environ:
        return None
    import redstart_sentinel  # noqa: PLC0415 (it is given along only where it is wanted)

    return redstart_sentinel


def choose(suite, options):
    """Of the suite, the tests that are asked for, in the order that is asked for."""
    if options.ids:
        wanted = Filter(Path(options.ids).read_text(encoding="utf-8").splitlines())
        suite = unittest.TestSuite([test for test in flatten(suite) if wanted.wants(test)])
    return ordered(suite, options.order, options.seed) if options.order else suite


def run_suite(suite, path, faults=()):
    """Runs the tests and writes the report, whatever stops them. Returns the recorder."""
    recorder = Recorder(flatten(suite))
    for folder, detail in faults:
        recorder.keep(("", folder), "error", detail.strip().splitlines()[-1], detail)
    try:
        suite.run(recorder)
    finally:
        recorder.pass_on_blocks()
        write_report(path, recorder)
    sys.stderr.write("Ran %d tests: %d failed\n" % (len(recorder.entries), recorder.red))  # noqa: UP031
    return recorder


def exit_code(recorder):
    return SOME_FAILED if recorder.red else ALL_PASSED if recorder.entries else NONE_FOUND


def main():
    parser = argparse.ArgumentParser()
    add_options(parser)
    options, arguments = parser.parse_known_args()
    watch = sentinel()
    sys.path[0] = os.getcwd()  # noqa: PTH109
    if not sys.warnoptions:
        warnings.simplefilter("default")
    suite, faults = load(arguments)
    if watch:
        watch.pytest_collection_finish()
    return exit_code(run_suite(choose(suite, options), options.out, faults))


if __name__ == "__main__":
    sys.exit(main())
