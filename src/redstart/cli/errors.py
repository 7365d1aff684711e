"""Print errors: what happened, then what to do."""

from __future__ import annotations

import difflib
import re
import shutil
import sys
from typing import Any

from redstart.cli.help import get_command_path
from redstart.cli.output import echo


def print_error(message: str, hint: str = "") -> None:
    """Print what happened and what to do. Lines are wrapped at a terminal; line breaks in the text are kept."""
    _print(f"error: {message.strip()}")
    if hint.strip():
        _print(f"hint: {hint.strip()}")


def _print(text: str) -> None:
    from redstart.cli.text_wrap import wrap

    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    first, *rest = text.split("\n")
    lines = wrap(first, width, hang=first.index(":") + 2)
    for further in rest:
        lines += wrap(further, width)
    for line in lines:
        echo(line, err=True)


def report_error(error: Exception) -> int | None:
    """Print an error that a user can act on and return its exit code. Return None for a defect of Redstart."""
    from redstart.core.errors import RedstartError

    if isinstance(error, RedstartError):
        if not error.causes:
            print_error(str(error), error.remedy)
        for cause in error.causes:
            print_error(str(cause))
        for hint in error.remedy.splitlines() if error.causes else ():
            _print(f"hint: {hint}")
        return error.exit_code
    if not hasattr(error, "format_message"):
        return None
    return _print_usage_error(error)


def _print_usage_error(error: Any) -> int:
    ctx = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        echo(error.format_message())
        return 0
    command = f"redstart {get_command_path(ctx)}".strip() if ctx is not None else "redstart"
    option = getattr(error, "option_name", None)
    if type(error).__name__ == "NoSuchOption":
        close = difflib.get_close_matches(str(option), error.possibilities or (), n=1, cutoff=0)
        hint = f"did you mean {close[0]}?" if close else f"`{command} --help` lists the options"
        print_error(f"unknown option {option}", hint)
    else:
        print_error(_in_our_words(error.format_message()), f"see `{command} --help`")
    return error.exit_code


def _in_our_words(message: str) -> str:
    from redstart.core.frozen import rephrase_validation_message

    text = rephrase_validation_message(re.sub(r"\s+", " ", message).strip().removesuffix("."))
    return text[:1].lower() + text[1:]
