"""Runs a command and gathers the reports that it wrote.

This file is run by the interpreter of the target, with nothing but its standard library, Python 3.8 or later:

    python collect_reports.py REPORTS.json GLOB command...

What a report was before the command does not count: one that is not written anew is not gathered. The exit code is the
command's, 128 + n where signal n ended it, 127 where it could not be started.
"""

import glob
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

LONG_AGO = 2_000_000_000
LARGEST = 32 << 20
MOST = 2000
NOT_FOUND = 127
ENCODING = re.compile(rb"<\?xml[^>]*encoding=[\"']([A-Za-z0-9._-]+)[\"']")


def matches(pattern):
    """Regular files in the current folder; nothing that a link leads to outside of it."""
    root = os.path.realpath(".")
    for path in sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207 (pathlib's has other rules for `**`)
        about = os.lstat(path)
        if stat.S_ISREG(about.st_mode) and os.path.realpath(path).startswith(root + os.sep):
            yield path, about


def text_of(content):
    named = ENCODING.match(content.lstrip())
    bom = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        return content.decode("utf-16" if bom else named.group(1).decode() if named else "utf-8", "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


def run(command):
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        sys.stderr.write("%s: %s\n" % (command[0], error.strerror or error))  # noqa: UP031
        return NOT_FOUND
    return 128 - code if code < 0 else code


def main():
    out, pattern, *command = sys.argv[1:]
    for path, _ in matches(pattern):
        os.utime(path, ns=(LONG_AGO, LONG_AGO))
    code = run(command)
    fresh = [(path, about) for path, about in matches(pattern) if about.st_mtime_ns != LONG_AGO]
    kept, left = {}, LARGEST
    for path, about in fresh[:MOST]:
        left -= about.st_size
        if left < 0:
            sys.stderr.write("The reports are larger than %d bytes; the rest is not read.\n" % LARGEST)  # noqa: UP031
            break
        # Paths in tracebacks then begin where those of the project do.
        kept[path] = text_of(Path(path).read_bytes()).replace(os.getcwd() + os.sep, "")  # noqa: PTH109
    Path(out).write_text(json.dumps({"reports": kept, "whole": len(kept) == len(fresh)}), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
