"""Errors: what happened, then what to do, on stderr; and commands that people type from habit."""

from __future__ import annotations

import sys
from io import StringIO

import pytest

from redstart.cli.errors import print_error, report_error
from redstart.cli.main import main
from redstart.core.errors import ConfigError, SandboxUnavailable


@pytest.fixture
def say(monkeypatch, capsys):
    def run_main(*arguments: str) -> tuple[object, list[str]]:
        monkeypatch.setattr("sys.argv", ["redstart", *arguments])
        # main() leaves a process at once if Temporal's library is loaded, which would end the test process.
        monkeypatch.delitem(sys.modules, "temporalio", raising=False)
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        assert captured.out == ""
        return end.value.code, captured.err.splitlines()

    return run_main


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("run", "redstart fix"),
        ("history", "redstart runs list"),
        ("status", "redstart runs list"),
        ("list", "redstart runs list"),
        ("ls", "redstart runs list"),
        ("log", "redstart show"),
        ("logs", "redstart show"),
        ("test", "redstart fix --dry-run runs the tests and changes nothing"),
        ("help", "redstart --help"),
        ("version", "redstart --version"),
        ("login", "set your provider's key, for example OPENAI_API_KEY, then run redstart doctor"),
        ("init-config", "redstart init"),
        ("runs ls", "redstart runs list"),
        ("fxi", "did you mean `redstart fix`?"),
        ("docter", "did you mean `redstart doctor`?"),
        ("runs lsit", "did you mean `redstart runs list`?"),
        ("frobnicate", "`redstart --help` lists the commands"),
        ("memory frobnicate", "`redstart memory --help` lists the commands"),
    ],
)
def test_unknown_command_gets_a_hint(typed, hint, say):
    assert say(*typed.split()) == (2, [f"error: unknown command {typed!r}", f"hint: {hint}"])


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (("fix", "--max-us", "1"), ["error: unknown option --max-us", "hint: did you mean --max-usd?"]),
        (("undo", "--zzzz"), ["error: unknown option --zzzz", "hint: `redstart undo --help` lists the options"]),
        (("eval", "run"), ["error: missing argument 'SET|PATH'", "hint: see `redstart eval run --help`"]),
        (("--zzzz",), ["error: unknown option --zzzz", "hint: `redstart --help` lists the options"]),
    ],
)
def test_usage_error_is_printed_like_any_other(arguments, lines, say):
    assert say(*arguments) == (2, lines)


def test_error_and_hint_are_on_separate_lines(capsys):
    assert report_error(ConfigError("no model is configured", remedy="redstart fix -m provider:name")) == 2
    assert capsys.readouterr().err == "error: no model is configured\nhint: redstart fix -m provider:name\n"


def test_each_of_several_causes_is_printed_as_an_error(capsys):
    causes = [SandboxUnavailable("bwrap is missing"), SandboxUnavailable("Docker cannot be reached")]
    error = SandboxUnavailable("no sandbox", remedy="apt install bubblewrap\nstart Docker", causes=causes)
    assert report_error(error) == 3
    assert capsys.readouterr().err.splitlines() == [
        "error: bwrap is missing",
        "error: Docker cannot be reached",
        "hint: apt install bubblewrap",
        "hint: start Docker",
    ]


def test_commands_to_copy_are_on_their_own_lines(capsys):
    print_error("no model is configured", "set a key:\nexport OPENAI_API_KEY=...\nredstart fix\n")
    assert capsys.readouterr().err.splitlines()[1:] == ["hint: set a key:", "export OPENAI_API_KEY=...", "redstart fix"]


def test_internal_error_is_not_reported_as_user_error(capsys):
    assert report_error(KeyError("x")) is None
    assert capsys.readouterr().err == ""


def test_error_without_a_hint_prints_no_hint(capsys):
    print_error("the run was not found")
    assert capsys.readouterr().err == "error: the run was not found\n"


class TerminalOutput(StringIO):
    def isatty(self) -> bool:
        return True


def test_errors_at_a_terminal_wrap_at_words(monkeypatch):
    out = TerminalOutput()
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setenv("COLUMNS", "50")
    hint = "check the address of the endpoint, and your key\n  cmd"
    print_error("the endpoint answered with an error that is long", hint)
    assert out.getvalue().splitlines() == [
        "error: the endpoint answered with an error that is",
        "       long",
        "hint: check the address of the endpoint, and your",
        "      key",
        "  cmd",
    ]
