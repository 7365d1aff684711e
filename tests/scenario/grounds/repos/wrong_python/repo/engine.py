import sys

if sys.version_info < (3, 99):
    raise RuntimeError("Python 3.99 or later is required")
