"""Watch pytest: a plugin of ours records which lines a test runs (`inside/redstart_spectrum.py`)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from redstart.core.shell import Environment
from redstart.core.suite import Suite
from redstart.toolkit.languages.python import pytest
from redstart.toolkit.suites.request import SuiteRequest, read_sandbox_file
from redstart.toolkit.suites.spectrum import ANSWER, SECONDS

PLUGIN = "redstart_spectrum"
QUESTION_FILE = "spectrum_asked.json"
MOST_LINES = 20_000


def build_coverage_request(
    suite: Suite, environment: Environment, failing_ids: Sequence[str], ids: Sequence[str]
) -> SuiteRequest:
    plan = json.dumps({"root": environment.mount, "red": list(failing_ids), "seconds": SECONDS, "lines": MOST_LINES})
    request = pytest.build_pytest_request(suite, environment, ids=ids)
    return request._replace(
        files_in={**request.files_in, f"{PLUGIN}.py": read_sandbox_file(f"{PLUGIN}.py"), QUESTION_FILE: plan},
        collect=(*request.collect, ANSWER),
    )
