"""Makes the modules beside the tests importable and checks whether a backend is available."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.append(HERE)


@pytest.fixture
def usable() -> object:
    """Return a check that fails if a backend is unavailable, but skips Docker if no daemon is named outside CI."""
    from backends import why_not

    def check(backend: str) -> None:
        if reason := why_not(backend):
            is_required = backend == "bwrap" or os.environ.get("DOCKER_HOST") or os.environ.get("CI")
            (pytest.fail if is_required else pytest.skip)(f"{backend}: {reason}")

    return check
