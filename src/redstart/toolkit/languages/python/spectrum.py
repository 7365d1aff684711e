"""Watch pytest: a plugin of ours records which lines a test runs (`inside/redstart_spectrum.py`)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from redstart.core.shell import Environment
from redstart.core.suite import Suite
from redstart.toolkit.languages.python import pytest
from redstart.toolkit.suites.request import SuiteRequest, inside
from redstart.toolkit.suites.spectrum import ANSWER, SECONDS

PLUGIN = "redstart_spectrum"
ASKED = "spectrum_asked.json"
MOST_LINES = 20_000


def watched(suite: Suite, environment: Environment, red: Sequence[str], ids: Sequence[str]) -> SuiteRequest:
    asked = json.dumps({"root": environment.mount, "red": list(red), "seconds": SECONDS, "lines": MOST_LINES})
    request = pytest.command(suite, environment, ids=ids)
    return request._replace(
        files_in={**request.files_in, f"{PLUGIN}.py": inside(f"{PLUGIN}.py"), ASKED: asked},
        collect=(*request.collect, ANSWER),
    )
