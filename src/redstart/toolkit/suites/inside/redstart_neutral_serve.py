"""Calls tests as plain functions, in a process that looks like an application's, and leaves what happened to each.

This file is run by the interpreter of the code under test, with nothing but its standard library, Python 3.8 or later.
`plan.json` beside it says what to call; `state.json` is written anew after each test, so that a process which is ended
leaves what it had by then. The other files beside it are never importable by name.
"""

# ruff: noqa: PTH100, PTH110, PTH118, PTH120, PTH123

import json
import logging
import os
import re
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHONPATH_SETTING = re.compile(r"^pythonpath\s*=\s*(\[[^\]]*\]|[^\n]*(?:\n[ \t]+\S[^\n]*)*)", re.MULTILINE)
LONG = 90_000
"""Seconds that a service has been running."""
SETTINGS_FILES = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")


def load(name):
    """A file beside this one, as a module that `sys.modules` does not know."""
    path = os.path.join(HERE, name)
    module = types.ModuleType(name)
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), path, "exec")
    exec(code, module.__dict__)  # noqa: S102
    return module


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


class Paths:
    """Where things lie for this process, and where they lay in the test run."""

    def __init__(self, plan):
        self.mount, self.project = plan["mount"], plan["project"]
        self.kept, self.apart = plan["kept"], plan["apart"]
        self.root = os.path.normpath(os.path.join(self.project, plan["folder"]))

    def moved(self, path):
        """The copy's path for one within the mount; any other path stays."""
        if any(path == kept or path.startswith(kept + os.sep) for kept in self.kept):
            return path
        if path == self.mount or path.startswith(self.mount + os.sep):
            return self.project + path[len(self.mount) :]
        return path

    def test_file(self, file):
        """Where a file of the tests lies: in the project, or apart from it."""
        beside, apart = os.path.join(self.root, file), os.path.join(self.apart, file)
        return beside if os.path.exists(beside) or not os.path.exists(apart) else apart

    def configured(self):
        """The folders that the runner's settings put on Python's path."""
        for name in SETTINGS_FILES:
            match = PYTHONPATH_SETTING.search(read_text(os.path.join(self.root, name)))
            if match:
                words = re.findall(r"[\w./-]+", match.group(1))
                return [os.path.normpath(os.path.join(self.root, word)) for word in words]
        return []

    def arrange_imports(self, lent):
        """Makes importable what the test run could import, from the copy."""
        for name, module in list(sys.modules.items()):
            mapping = getattr(module, "MAPPING", None) if name.startswith("__editable__") else None
            if isinstance(mapping, dict):
                mapping.update({key: self.moved(value) for key, value in mapping.items()})
        inherited = [self.moved(path) for path in sys.path[1:]]
        sys.path[:] = list(dict.fromkeys([*self.configured(), self.root, self.apart, *inherited, *lent]))


class DontReadFromInput:
    """What pytest has in place of the standard input."""

    encoding = "utf-8"

    def read(self, *_):
        raise OSError("pytest: reading from stdin while output is captured! Consider using `-s`.")

    readline = readlines = __next__ = read

    def __iter__(self):
        return self

    def fileno(self):
        raise ValueError("redirected stdin is pseudofile, has no fileno()")

    def isatty(self):
        return False

    def close(self):
        pass


class LogCaptureHandler(logging.StreamHandler):
    """What pytest's logging is known by."""


def put_back_streams():
    DontReadFromInput.__module__ = "_pytest.capture"
    sys.stdin = DontReadFromInput()


def put_back_logging():
    LogCaptureHandler.__module__ = "_pytest.logging"
    for _ in range(2):
        handler = LogCaptureHandler(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        logging.root.addHandler(handler)


def arrange(plan, paths):
    """Everything of the surroundings that a process can set for itself; gives back what makes the process look old."""
    applied = plan["applied"]
    clock = load("clock.py")
    if "clock" in applied:
        clock.set_ahead(plan["days_ahead"])
    age = clock.prepare_to_age() if "age" in applied else None
    os.chdir(plan["empty"] if "folder" in applied else paths.root)
    if "arguments" in applied:
        sys.argv[:] = [os.path.join(paths.project, "bin", "serve"), "--port", "8080"]
    else:
        sys.argv[:] = plan["arguments"]
    if "streams" not in applied:
        put_back_streams()
    if "logging" not in applied:
        put_back_logging()
    elif plan["configures_logging"]:
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    paths.arrange_imports(plan["lent"])
    return age


class State:
    def __init__(self):
        self.results = {}
        self._path = os.path.join(HERE, "state.json")
        # A test may replace any of these and forget to put it back.
        self._dumps, self._open, self._replace = json.dumps, open, os.replace

    def keep(self, test, result):
        self.results[test] = result
        with self._open(self._path + ".new", "w", encoding="utf-8") as file:
            file.write(self._dumps(self.results))
        self._replace(self._path + ".new", self._path)


def main():
    with open(os.path.join(HERE, "plan.json"), encoding="utf-8") as file:
        plan = json.load(file)
    paths, state = Paths(plan), State()
    age = arrange(plan, paths)
    cases = load("cases.py")
    session = cases.Session(plan, paths, load)
    if "age" in plan["applied"]:
        session.load_tests()
        age(LONG)
    for test in plan["tests"]:
        if "environment" not in plan["applied"] and plan["runner"] == "pytest":
            os.environ["PYTEST_CURRENT_TEST"] = test["id"] + " (call)"
        state.keep(test["id"], session.call(test))
    sys.stdout.flush()
    os._exit(0)  # threads and exit handlers of the tests are of no interest


if __name__ == "__main__":
    main()
