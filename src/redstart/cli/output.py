"""The one way to the screen: whatever a command prints or asks is printed here, and nothing reaches a terminal raw.

A test refuses every other call that writes (tests/test_architecture.py).
"""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import TYPE_CHECKING, Any

import typer

from redstart.core.visible import visible, visible_json, visible_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text of any origin."""
    typer.echo(visible(text), err=err, nl=nl)


def echo_json(text: str, *, nl: bool = True) -> None:
    """Print a value as JSON, and flush it: a program reads it as it comes."""
    sys.stdout.write(visible_json(text) + "\n" * nl)
    sys.stdout.flush()


def echo_output(text: str) -> None:
    """Pass on what a command in the sandbox printed: as it is to a file or a program, visible in a terminal."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def confirm(question: str, *, default: bool | None = False) -> bool:
    """Ask a person yes or no. Raises `typer.Abort` where nobody answers."""
    return typer.confirm(visible_line(question), default=default)


def prompt(question: str, kind: Any = None) -> Any:
    """Ask a person for a value of that type. Raises `typer.Abort` where nobody answers."""
    return typer.prompt(visible_line(question), type=kind)


def new_console(*, stderr: bool = False) -> Console:
    """The terminal as rich writes to it: give it only what `styled` makes."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def styled(*parts: tuple[str, str], **layout: Any) -> Text:
    """One line of parts, each a text and its style."""
    from rich.text import Text

    line = Text(**layout)
    for text, style in parts:
        line.append(visible_line(text, sys.maxsize), style=style)
    return line


def print_defect(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A traceback, for an error of ours: as `sys.excepthook` prints it."""
    echo("".join(traceback.format_exception(kind, error, trace)), err=True, nl=False)
