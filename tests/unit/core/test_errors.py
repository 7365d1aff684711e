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


def iter_error_types(kind: type[RedstartError] = RedstartError) -> Iterator[type[RedstartError]]:
    yield kind
    for subclass in kind.__subclasses__():
        yield from iter_error_types(subclass)


def test_each_error_has_its_own_text_even_without_docstrings() -> None:
    completed = subprocess.run([sys.executable, "-OO", "-c", TELL], capture_output=True, text=True, check=True)
    messages: dict[str, str] = json.loads(completed.stdout)
    error_names = {
        kind.__name__
        for kind in iter_error_types()
        if kind.__module__ == RedstartError.__module__ and kind is not Needs
    }
    assert set(messages) == error_names
    assert all(messages.values())
    assert len(set(messages.values())) == len(messages)
