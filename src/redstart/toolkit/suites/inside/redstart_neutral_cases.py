"""Finds a test by its id and calls it, without any runner.

This file is run by the interpreter of the code under test, with nothing but its standard library, Python 3.8 or later.
A result is a dictionary: `outcome` is `passed`, `failed` (with `type` and, in the test's file, `line`) or `unsupported`
(with `reason`): then nothing is known about the test.
"""

# ruff: noqa: PTH113, PTH118, PTH119, PTH120, PTH206

import builtins
import contextlib
import importlib.util
import inspect
import os
import sys
import traceback

RUNNER_PACKAGES = ("pytest", "_pytest", "pluggy", "iniconfig")

HANDLER, HANDLERS = "handle_request", "handlers.py"


class Unsupported(Exception):
    """Why a test cannot be called plainly."""


class HiddenRunner:
    """Lets test files import pytest without its being in `sys.modules` when the project's code looks."""

    def __init__(self, root, is_test_file):
        self._root, self._is_test_file = root, is_test_file
        self._modules, self._depth = {}, 0
        self._import = builtins.__import__
        builtins.__import__ = self._guarded

    def runner(self):
        """pytest itself. Raises `ImportError` where there is none."""
        with self.shown():
            return self._import("pytest")

    @contextlib.contextmanager
    def shown(self):
        if not self._depth:
            sys.modules.update(self._modules)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self._modules.update({name: sys.modules.pop(name) for name in list(sys.modules) if is_runner(name)})

    def _guarded(self, name, globals=None, locals=None, fromlist=(), level=0):  # noqa: A002
        names = globals or {}
        own = is_runner(names.get("__name__") or "")
        if own or (level == 0 and is_runner(name) and not self._is_source(names.get("__file__") or "")):
            with self.shown():
                return self._import(name, globals, locals, fromlist, level)
        return self._import(name, globals, locals, fromlist, level)

    def _is_source(self, path):
        """Whether it is code of the project that no test file is."""
        return path.startswith(self._root + os.sep) and not self._is_test_file(path)


def is_runner(name):
    top = name.partition(".")[0]
    return top in RUNNER_PACKAGES or top.startswith("pytest_")


class Session:
    """Calls tests one after another; what is set up for a module stays until the end."""

    def __init__(self, plan, paths, load):
        self._plan, self._paths = plan, paths
        self._modules, self._begun, self._class = {}, {}, None
        self._files = {paths.test_file(test["file"]) for test in plan["tests"]}
        self.hidden = HiddenRunner(paths.project, self._is_test_file) if "runner" in plan["applied"] else None
        if self.hidden is None:
            importlib.import_module("pytest" if plan["runner"] == "pytest" else "unittest")
        self._fixtures, self._parameters = load("fixtures.py"), load("parameters.py")
        for module in (self._fixtures, self._parameters):
            module.Unsupported = Unsupported
        self._prepared = ""

    def load_tests(self):
        """Imports the files of all tests. One that cannot be imported says so when its tests are called."""
        for path in sorted(self._files):
            with contextlib.suppress(Exception):
                self._prepare_django()
                for each in (*self._conftests(path), path):
                    self._module(each)

    def call(self, test):
        """What happens when this test is called; it is given by its file, its names and its parameters."""
        path = self._paths.test_file(test["file"])
        try:
            self._prepare_django()
            self._call(path, test["names"], test["parameters"])
        except Unsupported as reason:
            return {"outcome": "unsupported", "reason": str(reason)}
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            kind = type(error).__name__
            if kind in ("Skipped", "SkipTest", "XFailed"):
                return {"outcome": "unsupported", "reason": "it is skipped"}
            return {"outcome": "failed", "type": kind, "line": line_in(error, path), "text": str(error)[:500]}
        return {"outcome": "passed"}

    def _is_test_file(self, path):
        folder, name = os.path.split(path)
        parts = os.path.relpath(folder, self._paths.project).split(os.sep)
        known = path in self._files or name.startswith(("test_", "conftest")) or name.endswith("_test.py")
        return known or any(part in ("test", "tests", "testing") for part in parts)

    def _call(self, path, names, parameters):
        if not path.endswith(".py"):
            raise Unsupported("it is no test in a Python file")
        conftests = [self._module(each) for each in self._conftests(path)]
        owner = module = self._module(path)
        if not names:
            return self._call_all(module, path)
        name = names[-1]
        for part in names[:-1]:
            owner = getattr(owner, part, None)
        if owner is None or not callable(getattr(owner, name, None)):
            raise Unsupported("it is no function of its file")
        rename_code(getattr(owner, name))
        self._once(module, "setUpModule", "setup_module")
        if inspect.isclass(owner) and hasattr(owner, "setUp") and hasattr(owner, "assertEqual"):
            return self._call_case(owner, name, module, conftests)
        return self._call_function(owner, name, parameters, module, conftests)

    def _call_all(self, module, path):
        """Of a file that could not be imported at the baseline, every test that can be called."""
        called, reason = 0, "there is no test in it"
        for names in tests_in(module):
            try:
                self._call(path, names, "")
                called += 1
            except Unsupported as error:
                reason = str(error)
        if not called:
            raise Unsupported(reason)

    def _once(self, holder, *names):
        for name in names:
            function = getattr(holder, name, None)
            key = (id(holder), name)
            if function is not None and key not in self._begun:
                function(*([holder] if accepts_one(function) else []))
                self._begun[key] = True

    def _enter_class(self, kind):
        """Sets up a class of cases, once the one before it is taken down."""
        if self._class is kind:
            return
        before, self._class = self._class, None
        if before is not None:
            before.tearDownClass()
            before.doClassCleanups()
        kind.setUpClass()
        self._class = kind

    def _call_case(self, kind, name, module, conftests):
        """A test of a `unittest.TestCase`, by its own methods."""
        method = getattr(kind, name)
        for holder in (kind, method):
            if getattr(holder, "__unittest_skip__", False):
                raise Unsupported("it is skipped")
            if getattr(holder, "__unittest_expecting_failure__", False):
                raise Unsupported("it is expected to fail")
        marks = self._parameters.marks_of(module, kind, method)
        self._check_marks(marks)
        fixtures = self._fixtures.Fixtures(self._context(module, kind, method, conftests, marks))
        with fixtures:
            self._enter_class(kind)
            case = kind(name)
            fixtures.begin_autouse(case)
            if hasattr(case, "_pre_setup"):  # of Django
                case._pre_setup()
            if hasattr(case, "asyncSetUp"):
                run_coroutine(run_async_case(case, getattr(case, name)))
            else:
                run_case(case, getattr(case, name))
            if hasattr(case, "_post_teardown"):
                case._post_teardown()
        return

    def _call_function(self, owner, name, chosen, module, conftests):
        kind = owner if inspect.isclass(owner) else None
        function = getattr(owner, name)
        marks = self._parameters.marks_of(module, kind, function)
        self._check_marks(marks)
        fixtures = self._fixtures.Fixtures(self._context(module, kind, function, conftests, marks))
        used = [name for mark in marks if mark.name == "usefixtures" for name in mark.args]
        wanted = [*used, *self._fixtures.arguments_of(function)]
        holders = [*conftests, module, *([kind()] if hasattr(kind, "pytest_generate_tests") else [])]
        made = self._parameters.generated_marks(holders, fixtures.closure(wanted), module, kind, function)
        with_parameters = fixtures.with_parameters(wanted)
        values = self._parameters.values_for([*marks, *made], with_parameters, chosen)
        fixtures.parameters = {name: values.pop(name) for name in with_parameters}
        with fixtures:
            instance = None
            if kind is not None:
                self._once(kind, "setup_class")
                instance = kind()
                function = getattr(instance, name)
            fixtures.begin_autouse(instance)
            for name in used:
                fixtures.value(name)
            begin_plain(instance or module, instance is not None, function)
            wanted = self._fixtures.arguments_of(function)
            given = {key: values[key] if key in values else fixtures.value(key) for key in wanted}
            try:
                outcome = function(**given)
                if inspect.iscoroutine(outcome):
                    run_coroutine(outcome)
            finally:
                end_plain(instance or module, instance is not None, function)

    def _context(self, module, kind, function, conftests, marks):
        return self._fixtures.Context(module, kind, function, conftests, self.hidden, marks, self._paths.root)

    def _check_marks(self, marks):
        for mark in marks:
            if mark.name in ("skip", "xfail") or (mark.name == "skipif" and (not mark.args or mark.args[0])):
                raise Unsupported("it is marked " + mark.name)

    def _conftests(self, path):
        """The conftest files that hold for a test file, the outermost first."""
        if self._plan["runner"] != "pytest":
            return []
        folders, folder = [], os.path.dirname(path)
        while folder.startswith((self._paths.project, self._paths.apart)):
            folders.append(folder)
            folder = os.path.dirname(folder)
        files = [os.path.join(each, "conftest.py") for each in reversed(folders)]
        return [file for file in files if os.path.isfile(file)]

    def _module(self, path):
        """The module of a test file, imported under the name that its runner gives it."""
        if path in self._modules:
            return self._modules[path]
        if not os.path.isfile(path):
            raise Unsupported("its file is not there")
        top, names = os.path.dirname(path), [os.path.basename(path)[:-3]]
        while os.path.isfile(os.path.join(top, "__init__.py")):
            names.insert(0, os.path.basename(top))
            top = os.path.dirname(top)
        if top not in sys.path:
            sys.path.insert(0, top)
        if names[-1] == "__init__":
            names.pop()
        name = ".".join(names)
        if len(names) > 1:
            importlib.import_module(".".join(names[:-1]))
        loaded = sys.modules.get(name)
        if loaded is None or os.path.realpath(getattr(loaded, "__file__", None) or "") != os.path.realpath(path):
            spec = importlib.util.spec_from_file_location(name, path)
            loaded = importlib.util.module_from_spec(spec)
            sys.modules[name] = loaded
            try:
                spec.loader.exec_module(loaded)
            except BaseException:
                sys.modules.pop(name, None)
                raise
        self._modules[path] = loaded
        return loaded

    def _prepare_django(self):
        """Once, what `manage.py test` does before the first test."""
        settings = self._plan["django"]
        if not settings or self._prepared:
            return
        self._prepared = settings
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", settings)
        importlib.import_module("django").setup()
        utils = importlib.import_module("django.test.utils")
        utils.setup_test_environment()
        utils.setup_databases(verbosity=0, interactive=False)


def run_coroutine(coroutine):
    """What an application loads that awaits nothing is not loaded for it."""
    importlib.import_module("asyncio").run(coroutine)


def rename_code(function):
    """Whoever looks at its callers sees the names of a handler and its file, not those of a test."""
    plain = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(plain, "__code__", None)
    if code is not None and code.co_name != HANDLER:
        names = {"co_name": HANDLER}
        if not {"__file__", "filename"} & set(code.co_names):  # the test itself may ask where it lies
            names["co_filename"] = os.path.join(os.path.dirname(os.path.dirname(code.co_filename)), HANDLERS)
        if hasattr(code, "co_qualname"):
            names["co_qualname"] = HANDLER
        plain.__code__ = code.replace(**names)


def tests_in(module):
    """The names of the tests of a module: of functions, and of methods with their class."""
    for name, value in list(vars(module).items()):
        if inspect.isclass(value) and (name.startswith("Test") or hasattr(value, "assertEqual")):
            if value.__module__ == module.__name__:
                yield from ([name, each] for each in dir(value) if each.startswith("test"))
        elif name.startswith("test") and inspect.isfunction(value):
            yield [name]


def run_case(case, method):
    try:
        case.setUp()
        try:
            outcome = method()
            if inspect.iscoroutine(outcome):
                outcome.close()
                raise Unsupported("its runner awaits it")
        finally:
            case.tearDown()
    finally:
        case.doCleanups()


async def run_async_case(case, method):
    async def settle(outcome):
        if inspect.isawaitable(outcome):
            await outcome

    try:
        case.setUp()
        await case.asyncSetUp()
        try:
            await settle(method())
        finally:
            await case.asyncTearDown()
            case.tearDown()
    finally:
        while case._cleanups:
            function, args, kwargs = case._cleanups.pop()
            await settle(function(*args, **kwargs))


def begin_plain(holder, is_instance, function):
    names = ("setup_method",) if is_instance else ("setup_function",)
    call_plain(holder, names, function)


def end_plain(holder, is_instance, function):
    names = ("teardown_method",) if is_instance else ("teardown_function",)
    call_plain(holder, names, function)


def call_plain(holder, names, function):
    for name in names:
        plain = getattr(holder, name, None)
        if plain is not None:
            plain(*([function] if accepts_one(plain) else []))


def accepts_one(function):
    return len(inspect.signature(function).parameters) == 1


def line_in(error, path):
    """The last line of this file that the exception passed through; 0 where it did not."""
    path = os.path.realpath(path)
    own = (path, os.path.join(os.path.dirname(os.path.dirname(path)), HANDLERS))
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if os.path.realpath(frame.filename) in own]
    return lines[-1] if lines else (getattr(error, "lineno", 0) or 0 if isinstance(error, SyntaxError) else 0)
