"""The few fixtures of pytest that most tests use, made plainly, and those that the tests' own files define.

This file is run by the interpreter of the code under test, with nothing but its standard library, Python 3.8 or later.
`Unsupported` is put here by the file that loads this one.
"""

# ruff: noqa: F821 (a name that is put here)

import collections
import contextlib
import inspect
import io
import logging
import pathlib
import shutil
import sys
import tempfile

Context = collections.namedtuple("Context", "module kind function conftests hidden marks root")
Definition = collections.namedtuple("Definition", "function marker")
Captured = collections.namedtuple("CaptureResult", "out err")


def definition_of(value):
    """What `@pytest.fixture` left here, by whichever version; None for anything else."""
    if type(value).__name__ == "FixtureFunctionDefinition":
        return Definition(value._fixture_function, value._fixture_function_marker)
    marker = getattr(value, "_pytestfixturefunction", None) if not inspect.isclass(value) else None
    wrapped = getattr(value, "__pytest_wrapped__", None)
    return Definition(wrapped.obj, marker) if marker is not None and wrapped is not None else None


def arguments_of(function):
    """The arguments that a test or fixture is to be given, but for those that `mock.patch` gives."""
    parameters = inspect.signature(function).parameters.values()
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [each.name for each in parameters if each.kind in plain and each.default is inspect.Parameter.empty]
    patched = getattr(function, "patchings", ())
    given = [each for each in patched if not each.attribute_name and type(each.new).__name__ == "_SentinelObject"]
    return names[len(given) :]


class Fixtures:
    """The values of one test's fixtures; leaving the block takes them down."""

    def __init__(self, context):
        self._context = context
        self._values, self._stack, self._begun = {}, contextlib.ExitStack(), []
        self._instance, self.parameters = None, {}
        self._definitions = self._all_definitions()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return self._stack.__exit__(*error)

    def _all_definitions(self):
        found = {}
        holders = [vars(module) for module in (*self._context.conftests, self._context.module)]
        if self._context.kind is not None:
            holders += [vars(each) for each in reversed(self._context.kind.__mro__)]
        for holder in holders:
            for name, value in list(holder.items()):
                definition = definition_of(value)
                if definition is not None:
                    found.setdefault(definition.marker.name or name, []).append(definition)
        return found

    def begin_autouse(self, instance):
        self._instance = instance
        for name in self.autouse():
            self.value(name)

    def autouse(self):
        return [name for name, definitions in self._definitions.items() if definitions[-1].marker.autouse]

    def with_parameters(self, names):
        """Of these fixtures and those that they use, name to marker of the ones that have parameters."""
        markers = {
            name: self._definitions[name][-1].marker for name in self.closure(names) if name in self._definitions
        }
        return {name: marker for name, marker in markers.items() if marker.params is not None}

    def closure(self, names):
        """These fixtures, those that are always used, and those that either use."""
        seen, left = [], [*self.autouse(), *names]
        while left:
            name = left.pop(0)
            if name not in seen:
                seen.append(name)
                for definition in self._definitions.get(name, ())[-1:]:
                    left += arguments_of(definition.function)
        return seen

    def parameter(self):
        """The value of the fixture that is made at this moment."""
        if not self._begun or self._begun[-1] not in self.parameters:
            raise Unsupported("it uses request.param")
        return self.parameters[self._begun[-1]]

    def value(self, name):
        """Raises `Unsupported` for a fixture that is not to be had here."""
        own = self._definitions.get(name, [])
        depth = self._begun.count(name)
        if len(own) > depth:
            key = (name, depth)
            if key not in self._values:
                self._begun.append(name)
                try:
                    self._values[key] = self._define(own[-1 - depth])
                finally:
                    self._begun.pop()
            return self._values[key]
        if name not in PLAIN:
            raise Unsupported("it uses the fixture " + name)
        if name not in self._values:
            self._values[name] = PLAIN[name](self)
        return self._values[name]

    def _define(self, definition):
        function = definition.function
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise Unsupported("it uses an async fixture")
        wanted = arguments_of(function)
        first = list(inspect.signature(function).parameters)[:1]
        bound = first == ["self"] and wanted[:1] == ["self"]
        given = {name: self.value(name) for name in (wanted[1:] if bound else wanted)}
        positional = (self._instance,) if bound else ()
        if not inspect.isgeneratorfunction(function):
            return function(*positional, **given)
        generator = function(*positional, **given)
        value = next(generator)
        self._stack.callback(next, generator, None)
        return value

    def on_exit(self, function, *args):
        self._stack.callback(function, *args)

    def enter(self, manager):
        return self._stack.enter_context(manager)

    @property
    def context(self):
        return self._context


class Request:
    """The part of pytest's `request` that needs no runner."""

    def __init__(self, fixtures):
        self._fixtures = fixtures
        context = fixtures.context
        self.module, self.cls, self.function = context.module, context.kind, context.function
        self.scope, self.instance = "function", None
        self.config, self.node = Config(context), Node(context)

    @property
    def param(self):
        return self._fixtures.parameter()

    def addfinalizer(self, function):
        self._fixtures.on_exit(function)

    def getfixturevalue(self, name):
        return self._fixtures.value(name)

    def __getattr__(self, name):
        raise Unsupported("it uses request." + name)


class Config:
    """Of pytest's settings those that need no command line: every option has its default."""

    def __init__(self, context):
        self.rootpath = pathlib.Path(context.root)
        self.rootdir = self.rootpath

    def getoption(self, name, default=None, skip=False):  # noqa: ARG002
        return default

    def __getattr__(self, name):
        raise Unsupported("it uses request.config." + name)


class Node:
    """The test as pytest names it."""

    def __init__(self, context):
        self.name = getattr(context.function, "__name__", "")
        self.module, self.cls, self._marks = context.module, context.kind, context.marks
        self.path = self.fspath = pathlib.Path(context.module.__file__)

    def iter_markers(self, name=None):
        return iter([mark for mark in self._marks if name in (None, mark.name)])

    def get_closest_marker(self, name, default=None):
        return next(self.iter_markers(name), default)

    def __getattr__(self, name):
        raise Unsupported("it uses request.node." + name)


class Capture:
    """pytest's `capsys`."""

    def __init__(self):
        self._before = sys.stdout, sys.stderr
        self._out, self._err = io.StringIO(), io.StringIO()
        sys.stdout, sys.stderr = self._out, self._err

    def readouterr(self):
        captured = Captured(self._out.getvalue(), self._err.getvalue())
        for stream in (self._out, self._err):
            stream.seek(0)
            stream.truncate()
        return captured

    @contextlib.contextmanager
    def disabled(self):
        sys.stdout, sys.stderr = self._before
        try:
            yield
        finally:
            sys.stdout, sys.stderr = self._out, self._err

    def close(self):
        sys.stdout, sys.stderr = self._before


class LogRecords(logging.Handler):
    """pytest's `caplog`."""

    def __init__(self):
        super().__init__(0)
        self.records, self._levels = [], []
        self.handler = self
        self.setFormatter(logging.Formatter("%(levelname)-8s %(name)s:%(filename)s:%(lineno)d %(message)s"))

    def emit(self, record):
        self.records.append(record)

    @property
    def text(self):
        return "".join(self.format(record) + "\n" for record in self.records)

    @property
    def messages(self):
        return [record.getMessage() for record in self.records]

    @property
    def record_tuples(self):
        return [(record.name, record.levelno, record.getMessage()) for record in self.records]

    def clear(self):
        self.records.clear()

    def set_level(self, level, logger=None):
        chosen = logging.getLogger(logger)
        self._levels.append((chosen, chosen.level))
        chosen.setLevel(level)
        self.setLevel(level)

    @contextlib.contextmanager
    def at_level(self, level, logger=None):
        chosen = logging.getLogger(logger)
        before, own = chosen.level, self.level
        chosen.setLevel(level)
        self.setLevel(level)
        try:
            yield
        finally:
            chosen.setLevel(before)
            self.setLevel(own)

    def finish(self):
        for logger, level in reversed(self._levels):
            logger.setLevel(level)
        logging.root.removeHandler(self)


class Folders:
    """pytest's `tmp_path_factory`."""

    def __init__(self, fixtures):
        self._base = pathlib.Path(tempfile.mkdtemp(prefix="data-")).resolve()
        self._made = 0
        fixtures.on_exit(shutil.rmtree, str(self._base), True)

    def getbasetemp(self):
        return self._base

    def mktemp(self, basename, numbered=True):
        self._made += 1
        folder = self._base / ("%s%d" % (basename, self._made - 1) if numbered else basename)  # noqa: UP031
        folder.mkdir()
        return folder


def monkeypatch(fixtures):
    hidden = fixtures.context.hidden
    kind = hidden.runner().MonkeyPatch if hidden else sys.modules["pytest"].MonkeyPatch
    patch = kind()
    fixtures.on_exit(patch.undo)
    return patch


def capsys(fixtures):
    capture = Capture()
    fixtures.on_exit(capture.close)
    return capture


def caplog(fixtures):
    records = LogRecords()
    logging.root.addHandler(records)
    fixtures.on_exit(records.finish)
    return records


PLAIN = {
    "tmp_path": lambda fixtures: fixtures.value("tmp_path_factory").mktemp("case"),
    "tmp_path_factory": Folders,
    "monkeypatch": monkeypatch,
    "capsys": capsys,
    "caplog": caplog,
    "request": Request,
}
