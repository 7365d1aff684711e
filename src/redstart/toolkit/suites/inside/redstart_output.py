r"""Runs one of our unittest runners so that its report also holds what each failing test printed.

    python redstart_output.py unittest_junit|redstart_django [arguments of that runner]

The runner lies beside this file; Python 3.8 or later. Standard output and standard error stay the objects that they
were, and what is written to them still reaches them. What a subprocess prints, and what is written to a file descriptor
or to `sys.stdout.buffer`, is not recorded.
"""

import importlib
import sys
from xml.etree import ElementTree

import unittest_junit as junit

LIMIT = 20000
"""How many of the last characters of each stream are kept of a test, or up to twice as many."""
STREAMS = {"stdout": "system-out", "stderr": "system-err"}
RED = ("failure", "error")


class PrintedText:
    """What was written to a stream since it was last cleared."""

    def __init__(self, stream):
        self.is_paused = False
        self.clear()
        self._write = stream.write
        stream.write = self.write

    def clear(self):
        self._parts, self._size = [], 0

    @property
    def text(self):
        return "".join(self._parts)

    def write(self, text):
        if not self.is_paused and isinstance(text, str):
            self._parts.append(text)
            self._size += len(text)
            if self._size > 2 * LIMIT:
                self._parts = [self.text[-LIMIT:]]
                self._size = LIMIT
        return self._write(text)


class OutputRecorder(junit.Recorder):
    """Keeps what each failing test printed beside its results."""

    def __init__(self, tests):
        super().__init__(tests)
        self.printed = {}
        self.streams = {name: PrintedText(getattr(sys, name)) for name in STREAMS}

    def startTest(self, test):  # noqa: N802
        super().startTest(test)
        for stream in self.streams.values():
            stream.clear()

    def stopTest(self, test):  # noqa: N802
        place = junit.identity(test)
        if any(tag in RED for tag, _, _ in self.entries.get(place, ())):
            self.printed[place] = {name: stream.text for name, stream in self.streams.items()}
        super().stopTest(test)

    def keep(self, *entry):
        stream = self.streams["stderr"]
        stream.is_paused = True
        super().keep(*entry)
        stream.is_paused = False


def write_report(path, recorder, write=junit.write_report):
    write(path, recorder)
    tree = ElementTree.parse(path)  # noqa: S314 (the file that was just written)
    places = {tuple(junit.clean(part) for part in place): printed for place, printed in recorder.printed.items()}
    for case in tree.iter("testcase"):
        printed = places.get((case.get("classname"), case.get("name")), {})
        for name, text in printed.items():
            if text:
                ElementTree.SubElement(case, STREAMS[name]).text = junit.clean(text)
    tree.write(path, encoding="utf-8", xml_declaration=True)


def main():
    junit.Recorder, junit.write_report = OutputRecorder, write_report
    return importlib.import_module(sys.argv.pop(1)).main()


if __name__ == "__main__":
    sys.exit(main())
