"""Texts with terminal control sequences in every place for foreign text, and checks of what reaches the terminal.

One repo and one scripted model carry all of them through a run; reading commands follow.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import sqlite3
import struct
import subprocess
import sys
import termios
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from support.scenarios import question
from support.server import Request, ScriptedServer, Wire
from support.user import User

SEQUENCES = (
    "\x1b[2J",
    "\x1b]8;;http://evil.test\x1b\\",
    "\x1b]0;title\x07",
    "\x9b2J",
    "\x9d0;title\x9c",
    "\u202e",
    "\u2066",
    "\u200b",
    "\x07",
    "\rGREEN",
    "\x08\x08",
    "\x1bc",
    "\x1b[38;5;201m",
    "\x1b[?1049h",
    "\x1b[6n",
    "\x1bP$qm\x1b\\",
    "\x7f",
    "\x85",
    "\u2028",
    "\ufeff",
    "\x0c",
    "\U000e0041",
    "\x90q\x9c",
)
"""Sequences that a terminal executes or displays differently than written."""
IN_XML = tuple(each for each in SEQUENCES if re.fullmatch(r"[\x20-\ud7ff]+", each) and not each.isspace())
"""The sequences that a test report can contain unchanged, in an ID by which pytest still finds the test."""
IN_MODEL = ("why", "second why", "comment", "root cause", "what failed", "try next", "step")
IN_REPO = ("id 1", "id 2", "id 3", "id 4", "message", "second message", "output", "second output", "repo", "docstring")
IN_FILES = ("file 1", "file 2", "file 3", "file 4", "file 5", "file 6")
IN_MEMORY = ("summary", "cause", "fix", "proof", "when", "advice", "approver", "goal", "model")
IN_ERRORS = ("run", "path", "card", "setting", "command", "option", "provider", "replayed")
PLACES = (*IN_MODEL, *IN_REPO, *IN_FILES, *IN_MEMORY, *IN_ERRORS)
COLUMNS = 80
SECONDS = 240.0
_OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[1A|\r?\x1b\[2K|\r(?=\n)|\r(?=\x1b\[1A|\x1b\[2K)")
"""The sequences that rich writes for colors and the live line, and line endings as a terminal produces them."""


def text_of(place: str) -> str:
    """Return the text for a place: a sequence between recognizable words."""
    number = PLACES.index(place)
    among = IN_XML if place.startswith(("id ", "repo")) else SEQUENCES
    return f"q{number:02}{among[number % len(among)]}z{number:02}"


def make_repo(parent: Path) -> Path:
    """Create a project with a failing test and hostile names, IDs, messages and output."""
    repo = parent / f"shop{text_of('repo')}"
    repo.mkdir(parents=True)
    ids = [text_of(place) for place in IN_REPO if place.startswith("id ")]
    messages = [text_of("message"), text_of("second message")]
    prints = [text_of("output"), text_of("second output")]
    setting = "disable_test_id_escaping_and_forfeit_all_rights_to_community_support"
    (repo / "pytest.ini").write_text(f"[pytest]\n{setting} = true\n")
    (repo / "shop.py").write_text(f'"""A shop.\n\n{text_of("docstring")}\n"""\n\n\ndef total(prices):\n    return 0\n')
    (repo / "test_shop.py").write_text(
        "import pytest\n\nfrom shop import total\n\n\n"
        f"@pytest.mark.parametrize('number', [1, 2, 3, 4], ids={ids!a})\n"
        "def test_total(number):\n"
        f"    for line in {prints!a}:\n        print(line)\n"
        f"    assert total([number]) == number, {messages!a}[number % 2]\n"
    )
    for place in IN_FILES:
        (repo / f"{text_of(place)}.py".replace("/", "_")).write_text(
            "import pickle\n\npickle.loads(open('x', 'rb').read())\n"
        )
    return repo


def reply(request: Request) -> str:
    """Answer as the model: first a wrong patch, then the right one, with hostile texts everywhere."""
    asked = question(request)
    if asked == "remember":
        card = {"summary": "SUMMARY", "root_cause": "CAUSE", "fix": "FIX", "debug_steps": [text_of("step")]}
        return json.dumps({**card, "when": "A total counts WHEN", "advice": "Sum the ADVICE of a list"})
    if asked == "reflect":
        names = {"root_cause": "root cause", "what_failed": "what failed", "try_next": "try next"}
        return json.dumps({key: text_of(place) for key, place in names.items()})
    wrong = "return len(prices)" not in request.text
    why, new = (
        ("why", "    return len(prices)")
        if wrong
        else ("second why", f"    # {text_of('comment')}\n    return sum(prices)")
    )
    return f"WHY: {text_of(why)}\n\nshop.py\n<<<<<<< SEARCH\n    return 0\n=======\n{new}\n>>>>>>> REPLACE\n"


def poison_memory(database: Path) -> None:
    """Put hostile texts where an earlier version, or another hand, may have left them in the store."""
    words = {"SUMMARY": "summary", "CAUSE": "cause", "FIX": "fix", "WHEN": "when", "ADVICE": "advice"}
    with sqlite3.connect(database) as connection:
        for word, place in words.items():
            escaped = json.dumps(text_of(place))[1:-1]
            for table in ("cards", "lessons"):
                connection.execute(f"UPDATE {table} SET body = replace(body, ?, ?)", (word, escaped))
        for key, place in (
            ("verification", "proof"),
            ("provenance.approved_by", "approver"),
            ("provenance.model", "model"),
        ):
            connection.execute("UPDATE cards SET body = json_set(body, ?, ?)", (f"$.{key}", text_of(place)))
        connection.execute("UPDATE runs SET goal = ?", (text_of("goal"),))
    connection.close()


def reading_commands() -> list[list[str]]:
    """List commands that show the results of the run, and errors that quote their input."""
    return [
        ["show"],
        ["show", "--attempt", "1"],
        ["show", "--proof"],
        ["show", "--proof", "--format", "markdown"],
        ["show", "--json"],
        ["show", "--attempt", "1", "--json"],
        ["runs", "list"],
        ["runs", "list", "--json"],
        ["memory", "list"],
        ["memory", "list", "--json"],
        ["memory", "stats"],
        ["memory", "graph"],
        ["memory", "search", "total"],
        ["stats"],
        ["audit", "--show", "low"],
        ["audit", "--format", "json"],
        ["audit", "--format", "github"],
        ["show", text_of("run")],
        ["fix", text_of("path")],
        ["memory", "show", text_of("card")],
        ["config", "get", text_of("setting")],
        [text_of("command")],
        ["fix", f"--{text_of('option')}"],
        ["fix", "-m", f"{text_of('provider')}:any"],
        ["runs", "replay", text_of("replayed")],
    ]


_EACH = """
import json, sys
from redstart.cli.main import main
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit:
        pass
"""


def show_on_terminal(commands: Sequence[Sequence[str]], environ: Mapping[str, str], cwd: Path) -> str:
    """Run these commands in one process on a color terminal of 80 columns, and return what they write."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    full = {**environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    command = [sys.executable, "-c", _EACH, json.dumps(commands)]
    process = subprocess.Popen(command, env=full, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    written = b""
    # Linux raises an error when the other side is closed.
    with suppress(OSError):
        while chunk := os.read(ours, 65536):
            written += chunk
    process.wait(SECONDS)
    os.close(ours)
    return written.decode(errors="surrogateescape")


def control_signs(written: str) -> list[str]:
    """List control characters in the output, except rich's, and every hostile sequence in it."""
    hidden = ("Cc", "Cf", "Cs", "Zl", "Zp")
    signs = [sign for sign in _OURS.sub("", written) if sign not in "\n\t" and unicodedata.category(sign) in hidden]
    return signs + [each for each in SEQUENCES if each in written]


def places_shown(written: str) -> list[str]:
    """List the places whose text appears in the output."""
    return [place for number, place in enumerate(PLACES) if f"q{number:02}" in written]


def show_everything(user: User, folder: Path) -> str:
    """Run once on the hostile repo, then every reading command, and return all terminal output."""
    repo = make_repo(folder / "projects")
    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        written = show_on_terminal([["fix", ".", "--no-input", "--reflect", "always", "-v"]], user.environ, repo)
        poison_memory(user.home / "redstart.db")
        return written + show_on_terminal(reading_commands(), user.environ, repo)
