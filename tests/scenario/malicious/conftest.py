"""Make the generators of fake packages importable and serve the packages on loopback."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.append(HERE)


@pytest.fixture(scope="session")
def canaries() -> Iterator[Path]:
    """Return the folder where a payload leaves its mark. In a sandbox the same path is writable but private."""
    folder = Path(tempfile.mkdtemp(prefix="canary-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def fake_index(canaries: Path) -> Iterator[object]:
    from fake_index import FakeIndex
    from fakes_node import publish_node
    from fakes_python import publish_python

    with FakeIndex(canaries) as index:
        publish_python(index)
        publish_node(index)
        yield index


@pytest.fixture(scope="session")
def fetching(fake_index: object, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the variables of a user whose pip and npm use only the fake index."""
    from fake_index import FakeIndex
    from installing import variables_of

    assert isinstance(fake_index, FakeIndex)
    return variables_of(fake_index, tmp_path_factory.mktemp("somebody"))


@pytest.fixture
def somebody(user, fetching, fake_index):
    """Return a user of redstart whose pip uses only the fake index."""
    from fakes_python import repack

    # A new project's tests may use what redstart's own interpreter has.
    for name in ("hypothesis", "sortedcontainers"):
        if name not in fake_index.files["main"]:
            fake_index.publish(name, *repack(name))
    user.environ |= {name: value for name, value in fetching.items() if name not in ("PATH", "HOME")}
    return user
