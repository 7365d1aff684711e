"""Starts the pytest that Redstart lends to an interpreter which has none.

This file is run by the interpreter of the code under test: `python redstart_start_pytest.py DIRECTORY [arguments]`. The
directory comes last on the path, so that the project's own packages win.
"""

import os
import sys

if __name__ == "__main__":
    directory = sys.argv.pop(1)
    sys.path[0] = os.getcwd()  # noqa: PTH109 (as `python -m pytest` does)
    sys.path.append(directory)
    os.environ.pop("REDSTART_PYTEST", None)
    import pytest

    sys.exit(pytest.console_main())
