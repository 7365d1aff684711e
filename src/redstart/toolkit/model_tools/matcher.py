"""Find a regular expression in texts, in a process of its own: a model's pattern may run forever.

It imports nothing from Redstart. It reads a line of JSON with the pattern and the path and size of each text, then the
texts. It writes a line of JSON with the matching lines, or with what is wrong with the pattern.
"""

from __future__ import annotations

import json
import re
import resource
import sys

LONGEST_LINE = 1000


def main() -> None:
    request = json.loads(sys.stdin.buffer.readline())
    resource.setrlimit(resource.RLIMIT_CPU, (request["seconds"], request["seconds"] + 1))
    resource.setrlimit(resource.RLIMIT_AS, (request["memory"], request["memory"]))
    try:
        pattern = re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0)
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        sys.stdout.write(json.dumps({"wrong": str(error) or type(error).__name__}))
        return
    matches: list[tuple[str, int]] = []
    for path, size in request["texts"]:
        lines = sys.stdin.buffer.read(size).decode(errors="replace").split("\n")
        for number, line in enumerate(lines, 1):
            if len(matches) <= request["most"] and pattern.search(line[:LONGEST_LINE]):
                matches.append((path, number))
    sys.stdout.write(json.dumps({"found": matches}))


if __name__ == "__main__":
    main()
