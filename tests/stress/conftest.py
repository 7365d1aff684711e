from __future__ import annotations

import pytest
from hypothesis.configuration import set_hypothesis_home_dir


def pytest_configure(config: pytest.Config) -> None:
    """Put Hypothesis's files into pytest's cache folder, not into a folder of their own at the top of the tree."""
    set_hypothesis_home_dir(config.rootpath / ".pytest_cache" / "hypothesis")
