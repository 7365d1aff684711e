"""The cost of Redstart: the time of an import and the size of an installation."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from support.processor import measure_children_cpu

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements" / "base.txt"
CPU_SECONDS = 0.150
MEGABYTES = 170


def measure_cpu(code: str) -> float:
    start = measure_children_cpu()
    subprocess.run([sys.executable, "-c", code], check=True)
    return measure_children_cpu() - start


def test_importing_the_package_takes_at_most_150_ms_of_cpu() -> None:
    measure_cpu("import redstart")  # the first import writes byte code
    baseline = min(measure_cpu("pass") for _ in range(5))
    assert min(measure_cpu("import redstart") for _ in range(5)) - baseline <= CPU_SECONDS


def list_locked() -> list[str]:
    """List the distributions that an installation adds on this platform."""
    lines = [line.rstrip("\\ ") for line in LOCK.read_text().splitlines() if re.match(r"[A-Za-z0-9]", line)]
    requirements = [Requirement(line) for line in lines]
    return [item.name for item in requirements if item.marker is None or item.marker.evaluate()]


def measure_size(name: str) -> int:
    """Count the bytes of a distribution's files, without byte code, which not every installer writes."""
    files = [Path(str(file.locate())) for file in distribution(name).files or () if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in files if path.is_file())


def test_installation_takes_at_most_170_mb() -> None:
    sizes = {name: measure_size(name) for name in list_locked()}
    assert {"langgraph", "pydantic-ai-slim", "pytest", "sqlalchemy"} <= sizes.keys()
    own_files = [path for path in (ROOT / "src" / "redstart").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    total = (sum(sizes.values()) + sum(path.stat().st_size for path in own_files)) / 1e6
    largest = sorted(sizes, key=lambda name: -sizes[name])[:10]
    assert total <= MEGABYTES, f"{total:.1f} MB; the largest: {largest}"
    assert total > MEGABYTES / 3, "most of it was not found"
