"""The cost of Redstart: the time of an import and the size of an installation."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from support.processor import spent_by_children

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements" / "base.txt"
CPU_SECONDS = 0.150
MEGABYTES = 170


def cpu_of(code: str) -> float:
    before = spent_by_children()
    subprocess.run([sys.executable, "-c", code], check=True)
    return spent_by_children() - before


def test_importing_the_package_takes_at_most_150_ms_of_cpu() -> None:
    cpu_of("import redstart")  # the first import writes byte code
    bare = min(cpu_of("pass") for _ in range(5))
    assert min(cpu_of("import redstart") for _ in range(5)) - bare <= CPU_SECONDS


def locked() -> list[str]:
    """List the distributions that an installation adds on this platform."""
    lines = [line.rstrip("\\ ") for line in LOCK.read_text().splitlines() if re.match(r"[A-Za-z0-9]", line)]
    wanted = [Requirement(line) for line in lines]
    return [item.name for item in wanted if item.marker is None or item.marker.evaluate()]


def size_of(name: str) -> int:
    """Count the bytes of a distribution's files, without byte code, which not every installer writes."""
    files = [Path(str(file.locate())) for file in distribution(name).files or () if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in files if path.is_file())


def test_an_installation_takes_at_most_170_mb() -> None:
    sizes = {name: size_of(name) for name in locked()}
    assert {"langgraph", "pydantic-ai-slim", "pytest", "sqlalchemy"} <= sizes.keys()
    own = [path for path in (ROOT / "src" / "redstart").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    total = (sum(sizes.values()) + sum(path.stat().st_size for path in own)) / 1e6
    largest = sorted(sizes, key=lambda name: -sizes[name])[:10]
    assert total <= MEGABYTES, f"{total:.1f} MB; the largest: {largest}"
    assert total > MEGABYTES / 3, "most of it was not found"
