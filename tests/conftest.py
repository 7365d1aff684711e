"""What every test gets: no key, no run store of the user's, and slow or costly tests only where they are asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("redstart.testing")

SWITCHES = {"live": "asks a real model, which may cost money", "soak": "takes minutes"}
KEPT = {"REDSTART_DATA"}


def pytest_addoption(parser: pytest.Parser) -> None:
    for name, why in SWITCHES.items():
        parser.addoption(f"--{name}", action="store_true", help=f"also run what {why}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for name, why in SWITCHES.items():
        if not config.getoption(f"--{name}"):
            skip = pytest.mark.skip(reason=f"{why}; run with --{name}")
            for item in items:
                if item.get_closest_marker(name):
                    item.add_marker(skip)


@pytest.fixture(scope="session", autouse=True)
def quiet_home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A run store of the session's own; without --live also no key and no setting of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.config.getoption("--live"):
            for name in list(os.environ):
                if name.endswith("_API_KEY") or (name.startswith("REDSTART_") and name not in KEPT):
                    patch.delenv(name)
        patch.setenv("REDSTART_HOME", str(tmp_path_factory.mktemp("redstart-home")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config-home")))
        yield
