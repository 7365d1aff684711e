"""The docs are executed: commands marked `<!-- run -->` run, links resolve, and tables match the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from redstart.app.exits import exit_code
from redstart.core.events import Event, Phase
from redstart.core.run import Limits, Result, RunState, Status, Step
from support.warm import COMMAND, warm_for

ROOT = Path(__file__).parent.parent
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
MARK = re.compile(r"<!-- run(?: exit=(\d+))? -->\n```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


PROGRAM = re.compile(r"<!-- run -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A Python block that is run; a comment after a `print` holds its expected output."""


class Command(NamedTuple):
    line: str
    expected: list[str]


class Block(NamedTuple):
    place: str
    exit_code: int
    commands: list[Command]


def parse(body: str) -> list[Command]:
    commands: list[Command] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line.removeprefix("$ "), []))
        elif commands and line.strip() not in ("", "..."):
            commands[-1].expected.append(line.rstrip())
    return commands


def blocks() -> list[Block]:
    found: list[Block] = []
    for page in PAGES:
        text = page.read_text()
        for match in MARK.finditer(text):
            number = text.count("\n", 0, match.start()) + 1
            place = f"{page.relative_to(ROOT).as_posix()}:{number}"
            found.append(Block(place, int(match[1] or 0), parse(match[2])))
    return found


def missing_line(expected: list[str], printed: str) -> str | None:
    """Return the first expected line that is not printed in order, or None; `…` matches anything within its line.

    The duration of a step is not compared: a short step prints it only on a busy machine.
    """
    lines = iter(re.sub(r"  \d+\.\d s$", "", line.rstrip()) for line in printed.splitlines())
    for wanted in expected:
        pattern = re.compile(".*".join(re.escape(part) for part in wanted.split("…")))
        if not any(pattern.fullmatch(line) for line in lines):
            return wanted
    return None


@pytest.mark.parametrize("block", blocks(), ids=lambda block: block.place)
def test_commands_do_what_the_docs_say(block: Block, tmp_path: Path) -> None:
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(tmp_path),
        "REDSTART_HOME": str(tmp_path / "redstart-home"),
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "LANG": "C.UTF-8",
    }
    folder = tmp_path / "folder"
    folder.mkdir()
    assert block.commands
    for number, command in enumerate(block.commands, 1):
        done = subprocess.run(
            ["bash", "-c", command.line],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        wanted = block.exit_code if number == len(block.commands) else 0
        assert done.returncode == wanted, f"$ {command.line}\n{done.stdout}"
        absent = missing_line(command.expected, done.stdout)
        assert absent is None, f"$ {command.line}\ndid not print, in order: {absent}\n{done.stdout}"


def programs() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for page in PAGES:
        text = page.read_text()
        for match in PROGRAM.finditer(text):
            found.append((f"{page.relative_to(ROOT).as_posix()}:{text.count(chr(10), 0, match.start()) + 1}", match[1]))
    return found


def printed_by(program: str) -> list[str]:
    """List the lines that the program prints according to its comments."""
    return re.findall(r"^ *print\(.*\)  # (.+)$", program, re.MULTILINE)


@pytest.mark.parametrize(("place", "program"), programs(), ids=lambda text: text.partition("\n")[0])
def test_python_does_what_the_docs_say(place: str, program: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "REDSTART_HOME": str(tmp_path / "redstart-home")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path / "folder",
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert (done.returncode, bool(printed_by(program))) == (0, True), f"{place}\n{done.stdout}"
    absent = missing_line(printed_by(program), done.stdout)
    assert absent is None, f"{place}\ndid not print, in order: {absent}\n{done.stdout}"


def test_the_reader_of_blocks_tells_right_from_wrong() -> None:
    body = "$ redstart demo\nred   3 failed\n...\ngreen … passed\n$ true\n"
    first, second = parse(body)
    assert (first.line, second) == ("redstart demo", Command("true", []))
    assert missing_line(first.expected, "red   3 failed\nmore\ngreen 12 passed\n") is None
    assert missing_line(first.expected, "green 12 passed\nred   3 failed\n") == "green … passed"
    assert missing_line(first.expected, "red 3 failed\n") == "red   3 failed"


def test_the_promised_commands_are_run() -> None:
    lines = {command.line for block in blocks() for command in block.commands}
    assert {"redstart --help", "redstart demo", "redstart demo --cheat", "redstart graph"} <= lines


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_resolve(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    broken = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert broken == []


def test_index_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    unlisted = [page for page in pages if f"({page})" not in index and page != "index.md"]
    assert unlisted == []


RECORDS = sorted((ROOT / "docs" / "decisions").glob("*.md"))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_decision_records_have_one_form(record: Path) -> None:
    text = record.read_text()
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == ["Context", "Decision", "Why", "Consequences", "Alternatives"]
    assert text.startswith(f"# {record.name[:4]} ")
    assert len(text.splitlines()) <= 60


def test_decision_records_count_without_a_gap() -> None:
    assert [record.name[:4] for record in RECORDS] == [f"{number:04}" for number in range(len(RECORDS))]


def reference(name: str) -> str:
    return (ROOT / "docs" / "reference" / f"{name}.md").read_text()


def test_reference_names_what_the_code_has() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", reference("exit-codes"), re.MULTILINE)
    documented = {word: int(code) for code, words in rows for word in re.findall(r"`(\w+)`", words)}
    assert documented == {
        result.value: exit_code(RunState.model_construct(status=Status.finished, result=result)) for result in Result
    }
    parts = {f"`{word}`" for word in (*Step, *Phase, *Event.model_fields)}
    assert {part for part in parts if part not in reference("events")} == set()


COMMANDS = [
    *(
        "fix",
        "create",
        "improve",
        "audit",
        "resume",
        "show",
        "apply",
        "undo",
        "runs list",
        "runs replay",
        "runs fork",
        "runs prune",
        "runs watch",
        "runs pause",
        "runs cancel",
        "runs export",
    ),
    *(
        "demo",
        "doctor",
        "init",
        "models",
        "config show",
        "config get",
        "config set",
        "config path",
        "config edit",
        "config schema",
        "graph",
        "sandbox run",
        "sandbox shell",
        "sandbox build",
        "worker",
        "fleet up",
        "fleet status",
        "fleet register",
        "fleet promote",
    ),
    *(
        "eval run",
        "eval report",
        "eval compare",
        "eval export-predictions",
        "eval check-tasks",
        "eval mutate",
        "eval mine",
    ),
    *(
        "memory list",
        "memory show",
        "memory approve",
        "memory forget",
        "memory export",
        "memory stats",
        "memory graph",
        "memory mirror",
    ),
]


def test_the_reference_has_every_flag_and_no_other() -> None:
    real: set[str] = set()
    for command in ("", *COMMANDS):
        asked = ["-m", COMMAND, *command.split(), "--help"]
        code, printed, _ = warm_for(os.environ).run(asked, os.environ, None, "", seconds=300)
        assert code == 0, command
        real |= set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", printed, re.MULTILINE))
        assert f"`redstart {command}" in reference("cli")
    documented = set(re.findall(r"(--[a-z]+(?:-[a-z]+)*)", reference("cli")))
    assert documented == real


def test_documented_limits_are_the_defaults() -> None:
    rows = dict(re.findall(r"^\| `--(max-\w+)[^|]*\| ([\d.]+)", reference("cli"), re.MULTILINE))
    limits = Limits()
    assert {name: float(value) for name, value in rows.items()} == {
        "max-attempts": limits.attempts,
        "max-usd": limits.usd,
        "max-minutes": limits.minutes,
    }
