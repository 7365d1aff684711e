"""Gives pytest the byte code of its installed plugins, whose assertions it would otherwise rewrite again in each run.

This file is run by the interpreter of the code under test, with nothing but its standard library and its pytest, Python
3.8 and pytest 6.2 or later. Where a variable names a file, it leaves the byte code there; that is for a run which sees
no project. Elsewhere the file lies beside this one, where no test can write.
"""

import atexit
import base64
import marshal
import os
import sys
import zlib
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

HERE = Path(os.path.realpath(__file__)).parent
VARIABLE = "REDSTART_BYTECODE"
KEPT = "bytecode.txt"
VERSIONS = (MAGIC_NUMBER, pytest.__version__)

original = rewrite._rewrite_test


def pytest_addoption():
    """Called as soon as this plugin is loaded, before the installed ones are."""
    answer = os.environ.get(VARIABLE)
    if answer:
        record(answer)
    else:
        use()


def record(answer):
    """Leave all that is rewritten, even if a plugin ends the program."""
    kept = {}

    def rewrite_test(source, config):
        state, code = original(source, config)
        if Path(os.path.realpath(str(source))).parent != HERE:
            kept[str(source)] = (*describe(source), marshal.dumps(code))
        return state, code

    def write():
        packed = base64.b64encode(zlib.compress(marshal.dumps((VERSIONS, kept)), 1))
        Path(answer).write_bytes(packed if kept else b"")

    atexit.register(write)
    rewrite._rewrite_test = rewrite_test


def use():
    """Take the byte code instead of rewriting, if the source is still the one that it was made of."""
    kept = []

    def rewrite_test(source, config):
        if not kept:
            kept.append(read())
        size, modified, code = kept[0].get(str(source), (0, 0, b""))
        # Byte code that pytest would write, or that depends on the configuration, is left to pytest.
        if not code or not sys.dont_write_bytecode or config.getini("enable_assertion_pass_hook"):
            return original(source, config)
        if describe(source) != (size, modified):
            return original(source, config)
        return None, marshal.loads(code)  # noqa: S302 (as in `read`)

    rewrite._rewrite_test = rewrite_test


def read():
    try:
        packed = Path(HERE, KEPT).read_bytes()
        data = zlib.decompress(base64.b64decode(packed))
        versions, kept = marshal.loads(data)  # noqa: S302 (made by this file, where no code under test could change it)
    except (OSError, ValueError, EOFError, TypeError, zlib.error):
        return {}
    return kept if versions == VERSIONS else {}


def describe(source):
    state = os.stat(str(source))  # noqa: PTH116
    return state.st_size, state.st_mtime_ns
