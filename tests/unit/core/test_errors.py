"""Every error has a message, whatever raises it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from redstart.core.errors import Needs, RedstartError

pytestmark = pytest.mark.slow

TELL = """
import json
from redstart.core import errors
kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.RedstartError)]
print(json.dumps({kind.__name__: str(kind()) for kind in kinds if kind is not errors.Needs}))
"""


def kinds(kind: type[RedstartError] = RedstartError) -> Iterator[type[RedstartError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from kinds(below)


def test_each_has_words_of_its_own_also_where_python_drops_docstrings() -> None:
    done = subprocess.run([sys.executable, "-OO", "-c", TELL], capture_output=True, text=True, check=True)
    told: dict[str, str] = json.loads(done.stdout)
    own = {kind.__name__ for kind in kinds() if kind.__module__ == RedstartError.__module__ and kind is not Needs}
    assert set(told) == own
    assert all(told.values())
    assert len(set(told.values())) == len(told)
