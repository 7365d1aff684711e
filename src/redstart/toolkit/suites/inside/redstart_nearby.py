"""Evaluates expressions in the namespace of test modules, and writes down what each gives.

This file is run by the interpreter of the code under test, in the suite's folder: with nothing but the standard
library, Python 3.8 or later. `nearby_asked.json` beside it names the modules and their expressions; the answer goes to
the folder that is the only argument. An expression whose two evaluations differ, or that takes too long, has no result.
"""

import contextlib
import hashlib
import importlib
import importlib.util
import json
import os
import re
import signal
import sys
import time
from itertools import islice
from pathlib import Path

ASKED = Path(__file__).resolve().parent / "nearby_asked.json"
ANSWER = "nearby.json"
LONGEST = 200
"""Characters of a result that are kept as they are; of a longer one, its hash tells whether it is another."""
MOST_ITEMS = 50
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
SETTINGS = ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")


class TooLong(BaseException):
    """The time is up."""


@contextlib.contextmanager
def limited(seconds):
    """Raises `TooLong`, and again for code that swallows it."""

    def interrupt(_number, _frame):
        raise TooLong

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.25)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def add_paths(root, file):
    """What a test run has on its path. The first in the list comes first."""
    base = file.parent
    while (base / "__init__.py").is_file() and base != base.parent:
        base = base.parent
    places = [base, file.parent, root, root / "src", *(root / name for name in configured(root))]
    sys.path[:0] = [str(place) for place in dict.fromkeys(places) if place.is_dir() and str(place) not in sys.path]
    return base


def configured(root):
    """The folders of pytest's setting `pythonpath`."""
    for name in SETTINGS:
        with contextlib.suppress(OSError, ValueError):
            match = re.search(r"^\s*pythonpath\s*=\s*(.+)$", (root / name).read_text(encoding="utf-8"), re.MULTILINE)
            if match:
                return re.findall(r"[\w./-]+", match.group(1))
    return []


def load(root, path):
    """The module of a test file, by the name that a test run would give it."""
    file = root / path
    base = add_paths(root, file)
    for folder in dict.fromkeys((root, file.parent)):
        if (folder / "conftest.py").is_file():
            with contextlib.suppress(Exception):
                by_file("conftest", folder / "conftest.py")
    if base != file.parent:
        return importlib.import_module(".".join(file.relative_to(base).with_suffix("").parts))
    return by_file(file.stem, file)


def by_file(name, file):
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def described(value):
    """A text that is the same for equal results, as far as `repr` goes."""
    if hasattr(type(value), "__next__"):
        value = list(islice(value, MOST_ITEMS))
    if isinstance(value, (set, frozenset)) and value:
        text = "{" + ", ".join(sorted(map(repr, value))) + "}"
    elif type(value).__repr__ is object.__repr__ and getattr(value, "__dict__", None):
        text = f"{type(value).__name__}({vars(value)!r})"
    else:
        text = repr(value)
    text = ADDRESS.sub("", text)
    if len(text) > LONGEST:
        text = text[:LONGEST] + "... " + hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]
    return text


def evaluate(source, module, seconds):
    try:
        with limited(seconds):
            return [described(eval(source, vars(module))), False]  # noqa: S307 (it is what the test itself asks)
    except TooLong:
        return None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return [type(error).__name__, True]


def results_of(asked, root, seconds, deadline):
    """One for each expression of a module; None throughout where it cannot be imported."""
    expressions = asked["expressions"]
    try:
        with limited(max(deadline - time.monotonic(), 0.1)):
            module = load(root, asked["path"])
    except KeyboardInterrupt:
        raise
    except BaseException:
        return [None] * len(expressions)
    results = []
    for source in expressions:
        result = None
        if time.monotonic() < deadline:
            result = evaluate(source, module, seconds)
            if result is not None and evaluate(source, module, seconds) != result:
                result = None
        results.append(result)
    return results


def main():
    asked = json.loads(ASKED.read_text(encoding="utf-8"))
    own = str(Path(__file__).resolve().parent)
    sys.path[:] = [place for place in sys.path if place != own]
    root = Path.cwd()
    deadline = time.monotonic() + asked["seconds"]
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    answer = [results_of(module, root, asked["each"], deadline) for module in asked["modules"]]
    Path(sys.argv[1], ANSWER).write_text(json.dumps(answer), encoding="utf-8")
    os._exit(0)


if __name__ == "__main__":
    main()
