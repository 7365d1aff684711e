"""Notes which file of the project opens which: loaded by every interpreter that the tests start, under another name.

It is run by the interpreter of the code under test, with nothing but its standard library, Python 3.8 or later.
"""

import os
import sys

ROOT = os.path.realpath(os.curdir) + os.sep
MOST = 2000
seen = set()


def note(event, arguments):
    if event != "open" or not arguments or not isinstance(arguments[0], str) or len(seen) > MOST:
        return
    path = os.path.realpath(arguments[0])
    if not path.startswith(ROOT) or path.endswith((".pyc", ".py")):
        return
    frame = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith(ROOT):
        frame = frame.f_back
    by = os.path.relpath(frame.f_code.co_filename, ROOT) if frame is not None else ""
    how = "written" if arguments[2] & (os.O_WRONLY | os.O_RDWR) else "read"
    line = "%s\t%s\t%s\n" % (os.path.relpath(path, ROOT), by, how)  # noqa: UP031
    if by and line not in seen:
        seen.add(line)
        descriptor = os.open(OUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.write(descriptor, line.encode("utf-8", "replace"))
        os.close(descriptor)


OUT = os.environ.pop("REDSTART_HOOK", "")
if OUT:
    sys.addaudithook(note)
