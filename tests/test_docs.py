"""The docs are executed: commands marked `<!-- run -->` run, links resolve, and tables match the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from redstart.app.exit_codes import exit_code, triage_exit_code, verification_exit_code
from redstart.core.events import Event, Phase
from redstart.core.run import Limits, Result, RunState, Status, Step
from redstart.core.triage import TriageEnd
from redstart.core.verification import ProofRequirement, VerificationEnd
from support.user import User

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


def list_blocks() -> list[Block]:
    parsed_blocks: list[Block] = []
    for page in PAGES:
        text = page.read_text()
        for match in MARK.finditer(text):
            number = text.count("\n", 0, match.start()) + 1
            place = f"{page.relative_to(ROOT).as_posix()}:{number}"
            parsed_blocks.append(Block(place, int(match[1] or 0), parse(match[2])))
    return parsed_blocks


def find_missing_line(expected: list[str], printed: str) -> str | None:
    """Return the first expected line that is not printed in order, or None; `…` matches anything within its line.

    The duration of a step is not compared: a short step prints it only on a busy machine.
    """
    lines = iter(re.sub(r"  \d+\.\d s$", "", line.rstrip()) for line in printed.splitlines())
    for expected_line in expected:
        pattern = re.compile(".*".join(re.escape(part) for part in expected_line.split("…")))
        if not any(pattern.fullmatch(line) for line in lines):
            return expected_line
    return None


@pytest.mark.parametrize("block", list_blocks(), ids=lambda block: block.place)
def test_documented_commands_give_the_documented_output(block: Block, tmp_path: Path) -> None:
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
        completed = subprocess.run(
            ["bash", "-c", command.line],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        expected_code = block.exit_code if number == len(block.commands) else 0
        assert completed.returncode == expected_code, f"$ {command.line}\n{completed.stdout}"
        missing = find_missing_line(command.expected, completed.stdout)
        assert missing is None, f"$ {command.line}\ndid not print, in order: {missing}\n{completed.stdout}"


def list_programs() -> list[tuple[str, str]]:
    examples: list[tuple[str, str]] = []
    for page in PAGES:
        text = page.read_text()
        for match in PROGRAM.finditer(text):
            examples.append(
                (f"{page.relative_to(ROOT).as_posix()}:{text.count(chr(10), 0, match.start()) + 1}", match[1])
            )
    return examples


def list_printed_lines(program: str) -> list[str]:
    """List the lines that the program prints according to its comments."""
    return re.findall(r"^ *print\(.*\)  # (.+)$", program, re.MULTILINE)


@pytest.mark.parametrize(("place", "program"), list_programs(), ids=lambda text: text.partition("\n")[0])
def test_documented_python_gives_the_documented_output(place: str, program: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "REDSTART_HOME": str(tmp_path / "redstart-home")}
    completed = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path / "folder",
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert (completed.returncode, bool(list_printed_lines(program))) == (0, True), f"{place}\n{completed.stdout}"
    missing = find_missing_line(list_printed_lines(program), completed.stdout)
    assert missing is None, f"{place}\ndid not print, in order: {missing}\n{completed.stdout}"


def test_block_parser_accepts_matching_and_rejects_other_output() -> None:
    body = "$ redstart demo\nred   3 failed\n...\ngreen … passed\n$ true\n"
    first, second = parse(body)
    assert (first.line, second) == ("redstart demo", Command("true", []))
    assert find_missing_line(first.expected, "red   3 failed\nmore\ngreen 12 passed\n") is None
    assert find_missing_line(first.expected, "green 12 passed\nred   3 failed\n") == "green … passed"
    assert find_missing_line(first.expected, "red 3 failed\n") == "red   3 failed"


def test_promised_commands_are_run() -> None:
    lines = {command.line for block in list_blocks() for command in block.commands}
    assert {"redstart --help", "redstart demo", "redstart demo --cheat", "redstart graph"} <= lines


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_resolve(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    broken_links = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert broken_links == []


def test_index_links_every_page() -> None:
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


def test_decision_records_are_numbered_without_gaps() -> None:
    assert [record.name[:4] for record in RECORDS] == [f"{number:04}" for number in range(len(RECORDS))]


def read_reference(name: str) -> str:
    return (ROOT / "docs" / "reference" / f"{name}.md").read_text()


def test_reference_matches_the_code() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", read_reference("exit-codes"), re.MULTILINE)
    documented = {name: int(code) for code, cell in rows for name in re.findall(r"`(\w+)`", cell)}
    runs = {
        result.value: exit_code(RunState.model_construct(status=Status.finished, result=result)) for result in Result
    }
    verifications = {end.value: verification_exit_code(end, ProofRequirement.proof) for end in VerificationEnd}
    assert documented == runs | verifications | {end.value: triage_exit_code(end) for end in TriageEnd}
    parts = {f"`{name}`" for name in (*Step, *Phase, *Event.model_fields)}
    assert {part for part in parts if part not in read_reference("events")} == set()


COMMANDS = [
    *(
        "fix",
        "create",
        "improve",
        "audit",
        "verify",
        "triage",
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
        "models compare",
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


def test_reference_lists_exactly_the_existing_flags(tmp_path: Path) -> None:
    user = User(tmp_path, Path(sys.prefix))
    actual_flags: set[str] = set()
    for command in ("", *COMMANDS):
        result = user.redstart(*command.split(), "--help")
        assert result.code == 0, command
        flags = re.findall(r"^ +(?:-\w, )?(--[a-z-]+)(?: / (--[a-z-]+))?", result.out, re.MULTILINE)
        actual_flags |= {flag for pair in flags for flag in pair if flag}
        assert f"`redstart {command}" in read_reference("cli")
    documented = set(re.findall(r"(--[a-z]+(?:-[a-z]+)*)", read_reference("cli")))
    assert documented == actual_flags


def test_documented_limits_are_the_defaults() -> None:
    rows = dict(re.findall(r"^\| `--(max-\w+)[^|]*\| ([\d.]+)", read_reference("cli"), re.MULTILINE))
    limits = Limits()
    assert {name: float(value) for name, value in rows.items()} == {
        "max-attempts": limits.attempts,
        "max-usd": limits.usd,
        "max-minutes": limits.minutes,
    }
