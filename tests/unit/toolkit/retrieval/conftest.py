from __future__ import annotations

import pytest
from hypothesis.configuration import set_hypothesis_home_dir


def pytest_configure(config: pytest.Config) -> None:
    """What Hypothesis keeps goes with what pytest keeps, not into a folder of its own at the top of the tree."""
    set_hypothesis_home_dir(config.rootpath / ".pytest_cache" / "hypothesis")
