"""The corpus of malformed answers, generated and recorded: none of them is read wrongly."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCH = Path(__file__).parents[4] / "bench"


def test_the_corpus_is_read_right_or_refused():
    done = subprocess.run(
        [sys.executable, BENCH / "answers.py", "--quick"], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    figures = {load["name"]: load for load in json.loads(done.stdout.splitlines()[-1])["figures"]}
    assert figures["recovered"]["holds"], done.stdout
    assert (figures["wrong"]["value"], figures["crashes"]["value"]) == (0, 0), done.stdout
    assert figures["answers"]["value"] >= 200
    assert figures["recorded"]["value"] >= 80
