"""Tripwires on what the code reaches for: the process, the test runner, other modules' insides."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import PurePosixPath

from redstart.toolkit.honesty.marks import Mark, Surroundings, mark
from redstart.toolkit.honesty.names import Module, imports

RUNNERS = frozenset(
    ["pytest", "_pytest", "py", "unittest", "nose", "doctest", "pluggy", "mock", "hypothesis", "testtools"]
)
_ENDS = frozenset(
    [
        "os._exit",
        "os.abort",
        "_thread.interrupt_main",
        "os.kill",
        "os.killpg",
        "os.execv",
        "os.execve",
        "os.execvp",
        "os.execl",
        "os.execlp",
        "os.fork",
        "os.forkpty",
        "signal.alarm",
        "signal.setitimer",
        "signal.raise_signal",
        "signal.pthread_kill",
        "signal.siginterrupt",
        "posix._exit",
        "nt._exit",
        "faulthandler._sigsegv",
    ]
)
_EXITS = frozenset({"sys.exit", "builtins.exit", "builtins.quit", "builtins.SystemExit"})
_INSIDES = {
    "atexit": "at_exit",
    "gc.get_objects": "objects",
    "gc.get_referrers": "objects",
    "gc.get_referents": "objects",
    "inspect.stack": "frames",
    "inspect.currentframe": "frames",
    "inspect.getouterframes": "frames",
    "inspect.trace": "frames",
    "sys._getframe": "frames",
    "sys._getframemodulename": "frames",
    "sys._current_frames": "frames",
    "traceback.extract_stack": "frames",
    "traceback.format_stack": "frames",
    "traceback.walk_stack": "frames",
    "traceback.print_stack": "frames",
    "sys.settrace": "trace",
    "sys.setprofile": "trace",
    "sys.gettrace": "trace",
    "sys.monitoring": "trace",
    "sys.addaudithook": "trace",
    "threading.settrace": "trace",
    "threading.setprofile": "trace",
    "ctypes.pythonapi": "memory",
    "ctypes.memmove": "memory",
    "ctypes.memset": "memory",
    "ctypes.py_object": "memory",
    "sys.meta_path": "import_hook",
    "sys.path_hooks": "import_hook",
    "sys.path_importer_cache": "import_hook",
    "sys.orig_argv": "runner",
    "__main__": "runner",
    "builtins.eval": "hidden_code",
    "builtins.exec": "hidden_code",
    "builtins.compile": "hidden_code",
    "builtins.__builtins__": "hidden_code",
    "marshal.loads": "hidden_code",
    "types.CodeType": "hidden_code",
    "code.InteractiveInterpreter": "hidden_code",
}
_SAYS = {
    "at_exit": "registers something that runs when the process ends, after the tests were counted",
    "objects": "looks through every object of the process, the tests' own included",
    "frames": "looks at its callers, which are the tests",
    "trace": "watches or alters how other code runs",
    "memory": "writes into the interpreter's memory",
    "import_hook": "changes how modules are imported",
    "runner": "looks at how the process was started, which tells a test run from a real one",
    "hidden_code": "runs code that is not there to be read",
}
_FRAME_PARTS = frozenset(
    (
        "f_back",
        "f_locals",
        "f_globals",
        "f_code",
        "tb_frame",
        "gi_frame",
        "cr_frame",
        "__globals__",
        "__code__",
        "__subclasses__",
    )
)
_SAFE_TO_SET = frozenset(
    [
        "sys.stdout",
        "sys.stderr",
        "sys.stdin",
        "sys.argv",
        "sys.path",
        "sys.tracebacklimit",
        "sys.dont_write_bytecode",
        "sys.ps1",
        "sys.ps2",
        "os.environ",
        "socket.timeout",
        "ssl._create_default_https_context",
        "logging.raiseExceptions",
        "signal.signal",
    ]
)
_SENSITIVE = frozenset(["os", "sys", "builtins", "signal", "gc", "ctypes", "inspect", "posix", "importlib"]) | RUNNERS
_ENVIRONMENT = re.compile(r"PYTEST|UNITTEST|JUNIT|REDSTART|(?:^|_)(?:TEST|TESTS|TESTING|CI|TOX|NOX)(?:_|$)|COV_CORE")
_RUNNER_TEXT = re.compile(r"pytest|py\.test|unittest|conftest|PYTEST_|PYTEST|_pytest|/proc/(?:self|\d)|REDSTART_")
_TEST_PATH = re.compile(
    r"(?:^|[/\\*])test_[^\s/]*\.py|_test\.py$|(?:^|/)tests?/|junit|(?:^|[/*])test_\*"
    r"|\.pyc$|__pycache__|^testsuites?$|^testcase$"
)
_TEST_FOLDER = frozenset({"test", "tests"})
_SENSITIVE_NAMES = _FRAME_PARTS | frozenset(
    (
        "_exit",
        "_getframe",
        "get_objects",
        "get_referrers",
        "settrace",
        "setprofile",
        "meta_path",
        "currentframe",
        "extract_stack",
        "interrupt_main",
        "SkipTest",
        "PYTHONOPTIMIZE",
    )
)
_OPENS = frozenset(
    [
        "open",
        "join",
        "joinpath",
        "Path",
        "PurePath",
        "listdir",
        "glob",
        "rglob",
        "scandir",
        "walk",
        "read_text",
        "import_module",
    ]
)
_SPEAKS_ASSERT = re.compile(r"\bassert(?:Equal|True|False|Raises|In)?\b")
_COMMAND_LINE = frozenset(["argparse", "click", "typer", "optparse", "docopt", "fire", "getopt", "cmd", "absl"])
_COMMAND_PATH = re.compile(
    r"(?:^|/)(?:__main__|cli|main|manage|setup|__init__main)\.py$|(?:^|/)(?:cli|commands|scripts|bin)/"
)


def marks(module: Module, around: Surroundings, *, is_command: bool) -> Iterator[Mark]:
    """What the file reaches for that code under test has no need of.

    In a file that `is_command`, functions may end the process and read its arguments.
    """
    for node in ast.walk(module.tree):
        yield from _imported(node)
        yield from _hooks(node)
        yield from _texts(module, node, around)
        yield from _patched(module, node)
        if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            yield from _referred(module, node, is_command, around)
            yield from _modules(module, node)


def _referred(module: Module, node: ast.expr, is_command: bool, around: Surroundings) -> Iterator[Mark]:
    if isinstance(node, ast.Attribute) and node.attr in _FRAME_PARTS:
        yield mark("frames", node, f"`{node.attr}` reaches into running code, which can be the tests'.", node.attr)
    name = module.dotted(node)
    if not name or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        if isinstance(node, ast.Call):
            yield from _computed(module, node)
        return
    if name in _ENDS:
        yield _named("exit", node, name, "can end or replace the process before the tests are counted")
    elif name in _EXITS:
        yield from _exits(module, node, name, is_command, around)
    elif name == "sys.argv" and not is_command and not _in_main_guard(module, node):
        yield _named("runner", node, name, _SAYS["runner"])
    elif (kind := _INSIDES.get(name)) or (name.startswith("atexit.") and (kind := "at_exit")):
        yield _named(kind, node, name, _SAYS[kind])


def _exits(module: Module, node: ast.expr, name: str, is_command: bool, around: Surroundings) -> Iterator[Mark]:
    if _in_main_guard(module, node) or (name == "builtins.SystemExit" and not _is_raised(module, node)):
        return
    if module.function(node) is not None and (is_command or around.expects_exit):
        return
    yield _named("exit", node, name, "ends the process that runs the tests")


def _is_raised(module: Module, node: ast.expr) -> bool:
    near = [module.parents.get(node)]
    near += [module.parents.get(one) for one in near if isinstance(one, ast.Call)]
    return any(isinstance(one, ast.Raise) for one in near)


def _named(kind: str, node: ast.AST, name: str, says: str) -> Mark:
    return mark(kind, node, f"`{name.removeprefix('builtins.')}` {says}.", name)


def _computed(module: Module, node: ast.Call) -> Iterator[Mark]:
    called = module.dotted(node.func)
    if called in ("builtins.getattr", "builtins.setattr", "builtins.delattr") and len(node.args) > 1:
        base = module.dotted(node.args[0]).partition(".")[0]
        if base in _SENSITIVE and module.text(node.args[1]) is None:
            yield mark("hidden_code", node, f"It picks something of `{base}` by a name that is only made as it runs.")
    elif called in ("builtins.__import__", "importlib.import_module") and node.args:
        inner = node.args[0]
        if called == "builtins.__import__" and module.text(inner) is None:
            yield mark("hidden_code", node, "It imports a module by a name that is only made as it runs.")


def is_command_line(module: Module) -> bool:
    """Whether ending the process and reading its arguments is this file's business."""
    if _COMMAND_PATH.search(module.path):
        return True
    found = {one.dotted.partition(".")[0] for node in ast.walk(module.tree) for one in imports(node)}
    return bool(found & _COMMAND_LINE) or any(_is_main_guard(node) for node in module.tree.body)


def _is_main_guard(node: ast.AST) -> bool:
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left, *node.test.comparators]
    named = any(isinstance(one, ast.Name) and one.id == "__name__" for one in sides)
    return named and any(isinstance(one, ast.Constant) and one.value == "__main__" for one in sides)


def _in_main_guard(module: Module, node: ast.AST) -> bool:
    return any(_is_main_guard(one) for one in module.above(node))


def _imported(node: ast.AST) -> Iterator[Mark]:
    for one in imports(node):
        top = one.module.partition(".")[0]
        if top in RUNNERS - {"py"}:
            words = f"The code under test imports `{top}`, which belongs to the tests."
            yield mark("runner", node, words, f"import {one.dotted}")
        elif one.dotted in _ENDS:
            yield mark("exit", node, f"`{one.dotted}` can end the process before the tests are counted.", one.dotted)
        elif (kind := _INSIDES.get(one.dotted)) or (kind := _INSIDES.get(top if one.module == "atexit" else "")):
            yield mark(kind, node, f"`{one.dotted}` {_SAYS[kind]}.", f"import {one.dotted}")
        elif one.name == "*" and top in _SENSITIVE:
            yield mark("hidden_code", node, f"It takes every name of `{top}` at once.", f"import {one.dotted}")


def _hooks(node: ast.AST) -> Iterator[Mark]:
    names: list[str] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        names = [node.name]
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        names = [node.id]
    for name in names:
        if name.startswith("pytest_") or name in ("load_tests", "__tracebackhide__", "collect_ignore", "__test__"):
            yield mark("hook", node, f"`{name}` is a name that the test runner listens to.", name)


def _texts(module: Module, node: ast.AST, around: Surroundings) -> Iterator[Mark]:
    """Words of the test runner, and places of tests and reports, as the code's own data."""
    if not isinstance(node, ast.Constant | ast.BinOp | ast.JoinedStr | ast.Call | ast.Subscript):
        return
    text = module.text(node)
    if not text or module.is_docstring(node) or module.text(module.parents.get(node)) is not None:
        return
    if _SPEAKS_ASSERT.search(text) and re.search(r"assert\w*\W*[\\(=]|\bassert\b", text) and "\n" not in text:
        if not text.startswith("assert ") or re.search(r"[\\*+?]", text):
            yield mark("reads_tests", node, "It looks for assertions, which only tests have.", f"text {text}")
        return
    if re.search(r"\s", text):
        return
    if text in _SENSITIVE_NAMES:
        yield mark("hidden_code", node, f"`{text}` is reached for by its name as a text.", f"text {text}")
    elif _RUNNER_TEXT.search(text):
        yield mark("runner", node, f"`{text[:40]}` tells a test run from a real one.", f"text {text}")
    elif _is_environment_key(module, node) and _ENVIRONMENT.search(text):
        yield mark("runner", node, f"The variable `{text[:40]}` tells a test run from a real one.", f"text {text}")
    elif (
        _TEST_PATH.search(text)
        or re.split(r"[/.]", text)[-1] in around.test_names
        or PurePosixPath(text).name in around.test_names
    ):
        yield mark("reads_tests", node, f"`{text[:40]}` names a file of the tests or of their report.", f"text {text}")
    elif text in _TEST_FOLDER and _is_opened(module, node):
        yield mark("reads_tests", node, f"It builds a path into the folder `{text}`.", f"text {text}")


def _is_environment_key(module: Module, node: ast.AST) -> bool:
    near = list(module.above(node))[:3]
    return any(
        module.dotted(inner) in ("os.environ", "os.getenv", "os.environb", "posix.environ")
        for one in near
        if isinstance(one, ast.Call | ast.Subscript | ast.Compare)
        for inner in ast.walk(one)
    )


def _is_opened(module: Module, node: ast.AST) -> bool:
    parent = module.parents.get(node)
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div):
        return True
    if not isinstance(parent, ast.Call):
        return False
    called = parent.func
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) in _OPENS


def _patched(module: Module, node: ast.AST) -> Iterator[Mark]:
    """Assignments into modules and classes that are not the project's own."""
    for target in _targets(module, node):
        name = module.dotted(target)
        top = name.partition(".")[0]
        foreign = top in sys.stdlib_module_names or top in RUNNERS or top == "builtins"
        if foreign and "." in name and name not in _SAFE_TO_SET and not name.startswith("os.environ"):
            words = f"It replaces `{name}`, which is not the project's own and which the tests rely on."
            yield mark("patching", node, words, f"{name} {ast.dump(node)}")


def _targets(module: Module, node: ast.AST) -> Iterator[ast.AST]:
    places: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        places = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor):
        places = [node.target]
    for place in places:
        for one in place.elts if isinstance(place, ast.Tuple | ast.List) else [place]:
            if isinstance(one, ast.Attribute | ast.Subscript):
                yield one
    setters = ("builtins.setattr", "builtins.delattr")
    if isinstance(node, ast.Call) and len(node.args) > 1 and module.dotted(node.func) in setters:
        name = module.text(node.args[1]) or "?"
        yield ast.Attribute(value=node.args[0], attr=name, ctx=ast.Store())


def _modules(module: Module, node: ast.AST) -> Iterator[Mark]:
    """Uses of `sys.modules` other than the few that honest code has."""
    if module.dotted(node) != "sys.modules" or not isinstance(node, ast.Attribute | ast.Name):
        return
    parent = module.parents.get(node)
    above = module.parents.get(parent) if parent is not None else None
    asked: ast.expr | None = None
    if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Load):
        asked = parent.slice
    elif isinstance(parent, ast.Compare):
        asked = parent.left
    elif isinstance(parent, ast.Attribute) and parent.attr == "get" and isinstance(above, ast.Call) and above.args:
        asked = above.args[0]
    if asked is not None and (_is_own_module(asked) or module.text(asked) is not None):
        return
    yield mark(
        "import_hook", node, "It goes through or alters the modules that others imported.", ast.dump(parent or node)
    )


def _is_own_module(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id == "__name__") or (
        isinstance(node, ast.Attribute) and node.attr == "__module__"
    )
