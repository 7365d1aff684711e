"""Errors on the screen: what happened, then what to do."""

from __future__ import annotations

import difflib
import re
from typing import Any

import typer

from redstart.cli.help import path_of


def print_error(message: str, hint: str = "") -> None:
    """What happened and what to do. Further lines of a text, such as commands to copy, stand as they are."""
    typer.echo(f"error: {message.strip()}", err=True)
    if hint.strip():
        typer.echo(f"hint: {hint.strip()}", err=True)


def report_error(error: Exception) -> int | None:
    """Prints an error that a user can do something about. Its exit code; None for a defect of ours."""
    from redstart.core.errors import RedstartError

    if isinstance(error, RedstartError):
        if not error.causes:
            print_error(str(error), error.remedy)
        for cause in error.causes:
            print_error(str(cause))
        for hint in error.remedy.splitlines() if error.causes else ():
            typer.echo(f"hint: {hint}", err=True)
        return error.exit_code
    if not hasattr(error, "format_message"):
        return None
    return _print_usage_error(error)


def _print_usage_error(error: Any) -> int:
    ctx = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.format_message())
        return 0
    command = f"redstart {path_of(ctx)}".strip() if ctx is not None else "redstart"
    option = getattr(error, "option_name", None)
    if type(error).__name__ == "NoSuchOption":
        close = difflib.get_close_matches(str(option), error.possibilities or (), n=1, cutoff=0)
        hint = f"did you mean {close[0]}?" if close else f"`{command} --help` lists the options"
        print_error(f"there is no option {option}", hint)
    else:
        print_error(_in_our_words(error.format_message()), f"`{command} --help` explains it")
    return error.exit_code


def _in_our_words(message: str) -> str:
    plain = re.sub(r"\s+", " ", message).strip().removesuffix(".")
    return plain[:1].lower() + plain[1:]
