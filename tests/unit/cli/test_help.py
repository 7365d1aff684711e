"""Help: options in groups, whole sentences, an example each, at the width of the terminal."""

from __future__ import annotations

import re
import shlex
import sys
from typing import Any

import pytest
import typer

from redstart.cli import help as help_module
from redstart.cli.help import flag_of
from redstart.cli.main import app, main

EVERYDAY = ["fix", "create", "improve", "audit", "apply", "undo", "show", "resume", "runs", "doctor"]
ROOT: Any = typer.main.get_command(app)


def commands(group: Any = ROOT, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return every visible command by its words."""
    made: dict[str, Any] = {}
    for name, command in group.commands.items():
        if command.hidden:
            continue
        words = (*path, name)
        made |= commands(command, words) if hasattr(command, "commands") else {" ".join(words): command}
    return made


def printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str, width: int = 80
) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.argv", ["redstart", *arguments])
    # main() leaves a process at once if Temporal's library is loaded, which would end the test process.
    monkeypatch.delitem(sys.modules, "temporalio", raising=False)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("path", sorted(commands()))
def test_every_option_has_a_group(path):
    options = [
        flag_of(param) for param in commands()[path].params if param.param_type_name == "option" and not param.hidden
    ]
    assert [flag for flag in options if flag not in help_module.GROUP_BY_FLAG] == []


@pytest.mark.parametrize("path", sorted(commands()))
def test_every_command_has_an_example_that_it_accepts(path):
    command = commands()[path]
    assert help_module.EXAMPLES.get(path), f"add an example of `{path}` to help.py"
    for example in help_module.EXAMPLES[path]:
        words = shlex.split(example)
        assert " ".join(words[: 1 + len(path.split())]) == f"redstart {path}"
        command.make_context(path, words[1 + len(path.split()) :])


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("path", sorted({*commands(), *(p.split()[0] for p in commands() if " " in p)}))
def test_help_fits_the_terminal_and_cuts_no_sentence(path, width, monkeypatch, capsys):
    shown = printed(monkeypatch, capsys, *path.split(), "--help", width=width)
    assert [line for line in shown.splitlines() if len(line) > width] == []
    assert [line for line in shown.splitlines()[1:] if line.endswith("...")] == []


def test_the_options_of_fix_are_in_groups(monkeypatch, capsys):
    shown = printed(monkeypatch, capsys, "fix", "--help")
    titles = re.findall(r"^(\w[\w ]*):$", shown, re.MULTILINE)
    assert titles == ["Arguments", *help_module.GROUPS, "Examples"]
    limits = shown[shown.index("Limits:") : shown.index("Model:")]
    assert "--max-usd N" in limits
    assert "--model" not in limits


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_the_first_screen_begins_with_the_everyday_commands(arguments, monkeypatch, capsys):
    shown = printed(monkeypatch, capsys, *arguments)
    everyday, rest = shown.split("Everyday commands:\n")[1].split("\n\nMore commands:\n")
    assert [line.split()[0] for line in everyday.splitlines()] == EVERYDAY
    more, operators = rest.split("\n\nCommands for operators:\n")
    assert more.splitlines()[0].split()[0] == "demo"
    assert [line.split()[0] for line in operators.split("\n\n")[0].splitlines()] == ["worker", "fleet", "sandbox"]
    assert all(line.endswith(".") for line in everyday.splitlines())
    assert "Examples:\n  redstart demo\n" in shown
    assert "docs/tutorial.md" in shown


def test_every_command_of_the_first_screen_has_a_summary_of_one_line():
    assert [
        name for name, command in ROOT.commands.items() if not command.hidden and name not in help_module.SUMMARIES
    ] == []
    assert [text for text in help_module.SUMMARIES.values() if len(text) > 80 - 13 or not text.endswith(".")] == []
