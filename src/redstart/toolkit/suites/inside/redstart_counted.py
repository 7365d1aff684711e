"""Counts how often marked places of the tests are passed: each of them calls `at` with its number.

Every interpreter that the tests start loads it, under another name.

It is run by the interpreter of the code under test, with nothing but its standard library, Python 3.8 or later.
"""

import atexit
import os
import sys

OUT = os.environ.pop("REDSTART_HOOK", "")
counts = {}


def at(number):
    counts[number] = counts.get(number, 0) + 1


def write():
    lines = "".join(f"{number}\t{times}\n" for number, times in counts.items())
    descriptor = os.open(OUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(descriptor, lines.encode())
    os.close(descriptor)


sys.modules["redstart_counted"] = sys.modules[__name__]
if OUT:
    atexit.register(write)
