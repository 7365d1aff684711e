"""Hostile texts on a real terminal: how many of their control characters it would obey, and how many stay readable.

A scripted model makes one run over a repo whose names, test IDs, messages and output are hostile. Then every command
shows what the run left; the terminal has 80 columns and colors. The control codes that rich writes for these do not
count.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import _paths  # noqa: F401
from _figures import expect_equal, print_figures
from support.hostile_texts import PLACES, control_signs, list_shown_places, show_everything
from support.user import User


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the same: it takes less than a minute")
    parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        output = show_everything(User(Path(name), Path(sys.prefix)), Path(name))
    figures = (
        expect_equal("control_bytes", len(control_signs(output)), 0),
        expect_equal("texts", len(list_shown_places(output)), len(PLACES)),
    )
    return 0 if print_figures("escapes", figures) else 1


if __name__ == "__main__":
    sys.exit(main())
