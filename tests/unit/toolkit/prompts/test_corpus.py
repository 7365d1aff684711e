"""The corpus of malformed answers, generated and recorded: none of them is read wrongly."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCH = Path(__file__).parents[4] / "bench"


def test_corpus_answers_are_read_correctly_or_refused():
    completed = subprocess.run(
        [sys.executable, BENCH / "answers.py", "--quick"], capture_output=True, text=True, timeout=600
    )
    assert completed.returncode == 0, completed.stderr
    figures = {load["name"]: load for load in json.loads(completed.stdout.splitlines()[-1])["figures"]}
    assert figures["recovered"]["holds"], completed.stdout
    assert (figures["wrong"]["value"], figures["crashes"]["value"]) == (0, 0), completed.stdout
    assert figures["answers"]["value"] >= 200
    assert figures["recorded"]["value"] >= 80
