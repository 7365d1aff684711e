"""The command starts fast: help loads nothing that it does not need."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from support.processor import measure_children_cpu

HEAVY = {"pydantic_settings", "sqlalchemy", "alembic", "langgraph", "openai", "anthropic", "pydantic_ai", "rich"}
HEAVY |= {"temporalio", "psycopg", "neo4j"}


def list_loaded_packages(*arguments: str) -> set[str]:
    """List the top-level packages that a command imports."""
    completed = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True, timeout=300
    )
    return {name.split(".")[0].strip() for name in re.findall(r"\|\s+([\w.]+)$", completed.stderr, re.MULTILINE)}


@pytest.mark.parametrize(
    "arguments", ["--help", "fix --help", "runs --help", "fleet --help", "memory --help", "--version"]
)
def test_help_loads_no_heavy_package(arguments):
    packages = list_loaded_packages("-m", "redstart.cli.main", *arguments.split())
    assert "typer" in packages
    assert not packages & HEAVY


def test_importing_the_package_loads_nothing_heavy():
    assert not list_loaded_packages("-c", "import redstart") & {*HEAVY, "pydantic"}


def test_help_takes_at_most_300_ms_of_cpu():
    def measure_once() -> float:
        start = measure_children_cpu()
        subprocess.run([sys.executable, "-m", "redstart.cli.main", "--help"], capture_output=True, check=True)
        return measure_children_cpu() - start

    measure_once()  # the first run writes byte code
    # On a shared machine a measurement can only be too high, so one good measurement is enough.
    assert any(measure_once() <= 0.3 for _ in range(20))
