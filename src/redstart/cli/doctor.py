"""`redstart doctor`."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli.options import EnvFile, use_env_file
from redstart.cli.output import echo, echo_json

if TYPE_CHECKING:
    from redstart.app.doctor.results import DoctorCheck

NOT_READY = 3
WIDEST = 100
NAMES = 9


def doctor(
    online: Annotated[bool, typer.Option("--online", help="Ask each configured model one small question.")] = False,
    env_file: EnvFile = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Check this machine, the project in this directory and the models, and explain how to fix problems.

    Changes nothing. The exit code is 0 if a run can start, else 3.
    """
    from redstart.app.doctor.checks import examine

    folder = Path.cwd()
    if env_file is not None:
        use_env_file(env_file, folder)
    examination = examine(online=online, project=folder)
    if json:
        echo_json(examination.model_dump_json(indent=2))
        raise typer.Exit(0 if examination.ok else NOT_READY)
    width = min(shutil.get_terminal_size().columns, WIDEST)
    group = ""
    for check in examination.checks:
        if check.group != group:
            group = check.group
            echo(group)
        echo("\n".join(format_row(check, width)))
    echo("\n" + textwrap.fill(examination.summary, width, subsequent_indent="  "))
    raise typer.Exit(0 if examination.ok else NOT_READY)


def format_row(check: DoctorCheck, width: int) -> list[str]:
    """Format one check, wrapped between words, with each line of its remedy below."""
    heading = f"  {check.health.value:<5} {check.name:<{NAMES}} "
    lines = _wrap_text(check.detail, width, heading, " " * len(heading))
    for line in check.remedy.splitlines():
        indent = " " * (8 + len(line) - len(line.lstrip()))
        lines += _wrap_text(line.strip(), width, indent, indent + "  ")
    return lines


def _wrap_text(text: str, width: int, first_indent: str, later_indent: str) -> list[str]:
    # Do not break a word that is longer than the line, such as a path, so that users can copy it.
    return textwrap.wrap(
        text,
        width,
        initial_indent=first_indent,
        subsequent_indent=later_indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
