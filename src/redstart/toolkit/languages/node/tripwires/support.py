"""Tripwires on scripts that set up the tests although they are among the source files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import cast


def explain_test_role(path: str, tests: Mapping[str, bytes]) -> str:
    """Return a sentence that says why a script is test setup (a test configuration names it); empty otherwise."""
    stem = path.rpartition(".")[0]
    pattern = rb"""['"\s=](?:<rootDir>/|\./)?""" + re.escape(stem).encode() + rb"""(?:\.[cm]?[jt]sx?)?['"\s]"""
    name = re.compile(pattern)
    for config, text in tests.items():
        setup = _extract_test_settings(text) if config.endswith("package.json") else text
        if _is_configuration(config) and name.search(setup):
            return f"{config} names it as part of how the tests are run."
    return ""


def _is_configuration(path: str) -> bool:
    return bool(re.search(r"(?:^|/)(?:package\.json|\.mocharc[\w.]*|mocha\.opts|(?:jest|vitest|vite)\.[\w.]+)$", path))


def _extract_test_settings(text: bytes) -> bytes:
    """Return the parts of a package.json that concern tests, without the program's own entry points."""
    try:
        package: object = json.loads(text)
    except (ValueError, RecursionError):
        return b""
    table = cast("dict[str, object]", package) if isinstance(package, dict) else {}
    return json.dumps([table.get(key) for key in ("scripts", "jest", "mocha", "vitest", "ava", "nyc", "c8")]).encode()
