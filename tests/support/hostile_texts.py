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

from support.scenarios import parse_question
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
IN_XML = tuple(
    sequence for sequence in SEQUENCES if re.fullmatch(r"[\x20-\ud7ff]+", sequence) and not sequence.isspace()
)
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


def format_place_text(place: str) -> str:
    """Return the text for a place: a sequence between recognizable words."""
    number = PLACES.index(place)
    choices = IN_XML if place.startswith(("id ", "repo")) else SEQUENCES
    return f"q{number:02}{choices[number % len(choices)]}z{number:02}"


def make_repo(parent: Path) -> Path:
    """Create a project with a failing test and hostile names, IDs, messages and output."""
    repo = parent / f"shop{format_place_text('repo')}"
    repo.mkdir(parents=True)
    ids = [format_place_text(place) for place in IN_REPO if place.startswith("id ")]
    messages = [format_place_text("message"), format_place_text("second message")]
    prints = [format_place_text("output"), format_place_text("second output")]
    setting = "disable_test_id_escaping_and_forfeit_all_rights_to_community_support"
    (repo / "pytest.ini").write_text(f"[pytest]\n{setting} = true\n")
    (repo / "shop.py").write_text(
        f'"""A shop.\n\n{format_place_text("docstring")}\n"""\n\n\ndef total(prices):\n    return 0\n'
    )
    (repo / "test_shop.py").write_text(
        "import pytest\n\nfrom shop import total\n\n\n"
        f"@pytest.mark.parametrize('number', [1, 2, 3, 4], ids={ids!a})\n"
        "def test_total(number):\n"
        f"    for line in {prints!a}:\n        print(line)\n"
        f"    assert total([number]) == number, {messages!a}[number % 2]\n"
    )
    for place in IN_FILES:
        (repo / f"{format_place_text(place)}.py".replace("/", "_")).write_text(
            "import pickle\n\npickle.loads(open('x', 'rb').read())\n"
        )
    return repo


def reply(request: Request) -> str:
    """Answer as the model: first a wrong patch, then the right one, with hostile texts everywhere."""
    question_name = parse_question(request)
    if question_name == "remember":
        card = {"summary": "SUMMARY", "root_cause": "CAUSE", "fix": "FIX", "debug_steps": [format_place_text("step")]}
        return json.dumps({**card, "when": "A total counts WHEN", "advice": "Sum the ADVICE of a list"})
    if question_name == "reflect":
        names = {"root_cause": "root cause", "what_failed": "what failed", "try_next": "try next"}
        return json.dumps({key: format_place_text(place) for key, place in names.items()})
    is_wrong = "return len(prices)" not in request.text
    reason, old, new = (
        ("why", "    return 0", "    return len(prices)")
        if is_wrong
        else ("second why", "    return len(prices)", f"    # {format_place_text('comment')}\n    return sum(prices)")
    )
    return f"WHY: {format_place_text(reason)}\n\nshop.py\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


def poison_memory(database: Path) -> None:
    """Put hostile texts where an earlier version, or another hand, may have left them in the store."""
    markers = {"SUMMARY": "summary", "CAUSE": "cause", "FIX": "fix", "WHEN": "when", "ADVICE": "advice"}
    with sqlite3.connect(database) as connection:
        for marker, place in markers.items():
            escaped = json.dumps(format_place_text(place))[1:-1]
            for table in ("cards", "lessons"):
                connection.execute(f"UPDATE {table} SET body = replace(body, ?, ?)", (marker, escaped))
        for key, place in (
            ("verification", "proof"),
            ("provenance.approved_by", "approver"),
            ("provenance.model", "model"),
        ):
            connection.execute("UPDATE cards SET body = json_set(body, ?, ?)", (f"$.{key}", format_place_text(place)))
        connection.execute("UPDATE runs SET goal = ?", (format_place_text("goal"),))
    connection.close()


def list_reading_commands() -> list[list[str]]:
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
        ["show", format_place_text("run")],
        ["fix", format_place_text("path")],
        ["memory", "show", format_place_text("card")],
        ["config", "get", format_place_text("setting")],
        [format_place_text("command")],
        ["fix", f"--{format_place_text('option')}"],
        ["fix", "-m", f"{format_place_text('provider')}:any"],
        ["runs", "replay", format_place_text("replayed")],
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
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    full = {**environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    command = [sys.executable, "-c", _EACH, json.dumps(commands)]
    process = subprocess.Popen(command, env=full, cwd=cwd, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    output = b""
    # Linux raises an error when the other side is closed.
    with suppress(OSError):
        while chunk := os.read(master, 65536):
            output += chunk
    process.wait(SECONDS)
    os.close(master)
    return output.decode(errors="surrogateescape")


def control_signs(output: str) -> list[str]:
    """List control characters in the output, except rich's, and every hostile sequence in it."""
    categories = ("Cc", "Cf", "Cs", "Zl", "Zp")
    characters = [
        character
        for character in _OURS.sub("", output)
        if character not in "\n\t" and unicodedata.category(character) in categories
    ]
    return characters + [sequence for sequence in SEQUENCES if sequence in output]


def list_shown_places(output: str) -> list[str]:
    """List the places whose text appears in the output."""
    return [place for number, place in enumerate(PLACES) if f"q{number:02}" in output]


def show_everything(user: User, folder: Path) -> str:
    """Run once on the hostile repo, then every reading command, and return all terminal output."""
    repo = make_repo(folder / "projects")
    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        output = show_on_terminal([["fix", ".", "--no-input", "--reflect", "always", "-v"]], user.environ, repo)
        poison_memory(user.home / "redstart.db")
        return output + show_on_terminal(list_reading_commands(), user.environ, repo)
