"""Help: options in groups, whole sentences, an example each, at the width of the terminal."""

from __future__ import annotations

import re
import shlex
import sys
from typing import Any

import pytest
import typer

from redstart.cli import help as help_module
from redstart.cli.help import get_longest_flag
from redstart.cli.main import app, main, select_app

EVERYDAY = [
    "fix",
    "create",
    "improve",
    "audit",
    "verify",
    "triage",
    "apply",
    "undo",
    "show",
    "resume",
    "runs",
    "doctor",
]
ROOT: Any = typer.main.get_command(app)


def list_commands(group: Any = ROOT, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return every visible command by its words."""
    commands_by_name: dict[str, Any] = {}
    for name, command in group.commands.items():
        if command.hidden:
            continue
        name_parts = (*path, name)
        commands_by_name |= (
            list_commands(command, name_parts) if hasattr(command, "commands") else {" ".join(name_parts): command}
        )
    return commands_by_name


def render_help(
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


@pytest.mark.parametrize("path", sorted(list_commands()))
def test_every_option_has_a_group(path):
    options = [
        get_longest_flag(param)
        for param in list_commands()[path].params
        if param.param_type_name == "option" and not param.hidden
    ]
    assert [flag for flag in options if flag not in help_module.GROUP_BY_FLAG] == []


@pytest.mark.parametrize("path", sorted(list_commands()))
def test_every_command_has_a_valid_example(path):
    command = list_commands()[path]
    assert help_module.EXAMPLES.get(path), f"add an example of `{path}` to help.py"
    for example in help_module.EXAMPLES[path]:
        example_arguments = shlex.split(example)
        assert " ".join(example_arguments[: 1 + len(path.split())]) == f"redstart {path}"
        command.make_context(path, example_arguments[1 + len(path.split()) :])


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("path", sorted({*list_commands(), *(p.split()[0] for p in list_commands() if " " in p)}))
def test_help_fits_the_terminal_and_cuts_no_sentence(path, width, monkeypatch, capsys):
    output = render_help(monkeypatch, capsys, *path.split(), "--help", width=width)
    assert [line for line in output.splitlines() if len(line) > width] == []
    assert [line for line in output.splitlines()[1:] if line.endswith("...")] == []


def test_fix_options_are_grouped(monkeypatch, capsys):
    output = render_help(monkeypatch, capsys, "fix", "--help")
    titles = re.findall(r"^(\w[\w ]*):$", output, re.MULTILINE)
    assert titles == ["Arguments", *help_module.GROUPS, "Examples"]
    limits = output[output.index("Limits:") : output.index("Model:")]
    assert "--max-usd N" in limits
    assert "--model" not in limits


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_first_screen_begins_with_the_everyday_commands(arguments, monkeypatch, capsys):
    output = render_help(monkeypatch, capsys, *arguments)
    everyday, remainder = output.split("Everyday commands:\n")[1].split("\n\nMore commands:\n")
    assert [line.split()[0] for line in everyday.splitlines()] == EVERYDAY
    more_commands, operators = remainder.split("\n\nCommands for operators:\n")
    assert more_commands.splitlines()[0].split()[0] == "demo"
    assert [line.split()[0] for line in operators.split("\n\n")[0].splitlines()] == ["worker", "fleet", "sandbox"]
    assert all(line.endswith(".") for line in everyday.splitlines())
    assert "Examples:\n  redstart demo\n" in output
    assert "docs/tutorial.md" in output


def test_every_command_on_the_first_screen_has_a_one_line_summary():
    assert [
        name for name, command in ROOT.commands.items() if not command.hidden and name not in help_module.SUMMARIES
    ] == []
    assert [text for text in help_module.SUMMARIES.values() if len(text) > 80 - 13 or not text.endswith(".")] == []


def test_only_the_typed_command_is_prepared_and_its_help_is_that_of_the_whole_app():
    for path, command in list_commands().items():
        words = path.split()
        alone: Any = typer.main.get_command(select_app(words))
        assert list(alone.commands) == words[:1]
        selected_command = list_commands(alone)[path]
        assert selected_command.get_help(typer.Context(selected_command)) == command.get_help(typer.Context(command))
    for words in ([], ["--help"], ["fixx"], ["--demo", "show"]):
        assert select_app(words) is app
