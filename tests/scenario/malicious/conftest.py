"""Makes the generators of fake packages importable, and serves them on loopback."""

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
    """Where a payload leaves its mark. It can be written to inside a sandbox too, in that one's own folder."""
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
    """The variables of somebody whose pip and npm know only the fake index."""
    from fake_index import FakeIndex
    from installing import variables_of

    assert isinstance(fake_index, FakeIndex)
    return variables_of(fake_index, tmp_path_factory.mktemp("somebody"))


@pytest.fixture
def somebody(user, fetching, fake_index):
    """Somebody who runs redstart, and whose pip knows only the fake index."""
    from fakes_python import repacked

    # A new project's tests may use what redstart's own interpreter has.
    for name in ("hypothesis", "sortedcontainers"):
        if name not in fake_index.files["main"]:
            fake_index.publish(name, *repacked(name))
    user.environ |= {name: value for name, value in fetching.items() if name not in ("PATH", "HOME")}
    return user
