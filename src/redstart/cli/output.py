"""Print and ask everything here, so that no unescaped text reaches a terminal.

A test refuses every other call that writes (tests/test_architecture.py).
"""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import TYPE_CHECKING, Any

import typer

from redstart.core.safe_text import escape_hidden, escape_json, escape_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text of any origin, with control characters escaped."""
    typer.echo(escape_hidden(text), err=err, nl=nl)


def echo_json(text: str, *, nl: bool = True) -> None:
    """Print a value as JSON and flush it, because a program may read it at once."""
    sys.stdout.write(escape_json(text) + "\n" * nl)
    sys.stdout.flush()


def echo_output(text: str) -> None:
    """Pass on the output of a command in the sandbox: unchanged to a file or program, escaped in a terminal."""
    sys.stdout.write(escape_hidden(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def confirm(question: str, *, default: bool | None = False) -> bool:
    """Ask a person yes or no. Raises `typer.Abort` if nobody answers."""
    return typer.confirm(escape_line(question), default=default)


def prompt(question: str, kind: Any = None) -> Any:
    """Ask a person for a value of that type. Raises `typer.Abort` if nobody answers."""
    return typer.prompt(escape_line(question), type=kind)


def create_console(*, stderr: bool = False) -> Console:
    """Return a console of rich. Print only the results of `style_line` to it."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def style_line(*parts: tuple[str, str], **layout: Any) -> Text:
    """Make one line of parts, each a text and its style."""
    from rich.text import Text

    line = Text(**layout)
    for text, style in parts:
        line.append(escape_line(text, sys.maxsize), style=style)
    return line


def print_styled(console: Console, text: str, style: str = "") -> None:
    """Print one line of any origin in a style, with control characters escaped."""
    console.print(style_line((text, style)))


def print_defect(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of a defect of Redstart. For use as `sys.excepthook`."""
    echo("".join(traceback.format_exception(kind, error, trace)), err=True, nl=False)
