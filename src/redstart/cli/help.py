"""Help as plain text: options in groups, examples below, and a first screen with the everyday commands on top.

Typer can do this with rich, which takes longer to load than the rest of the command.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from redstart.cli import help_texts as texts

WIDEST = 100
NAME_COLUMN = 28
LONGEST_CHOICES = 24
_PLACEHOLDERS = {
    "int": "N",
    "int range": "N",
    "float": "N",
    "float range": "N",
    "str": "TEXT",
    "list[str]": "TEXT",
    "path": "PATH",
    "file": "PATH",
    "directory": "PATH",
}
_PLACEHOLDER = re.compile(r"<([^<>]+)>$")
_RANGE = re.compile(r"\s*\[(?:[\d.]+<=?)?x[<>]=?[\d.]+\]$")


class HelpfulCommand(TyperCommand):
    """A command whose help has its options in groups, and examples."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write_parameters(self.get_params(ctx), ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.upper() for piece in super().collect_usage_pieces(ctx)]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_examples(texts.EXAMPLES.get(path_of(ctx), ()), formatter)


class HelpfulGroup(TyperGroup):
    """A group whose help shows whole sentences, and that knows what people type from habit."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, summarize(path_of(ctx), name, command)) for name, command in visible(self)]
        with formatter.section("Commands"):
            formatter.write_dl(rows, col_max=NAME_COLUMN)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not ctx.resilient_parsing and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise unknown_command(path_of(ctx), args[0], [name for name, _ in visible(self)])
        return super().resolve_command(ctx, args)


class FirstScreen(HelpfulGroup):
    """`redstart` itself: the everyday commands first."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write_usage("redstart", "COMMAND [OPTIONS]")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(texts.TAGLINE)
        commands = dict(visible(self))
        placed = {name for section in texts.SECTIONS for name in section.names}
        others = tuple(name for name in commands if name not in placed)
        for section in texts.SECTIONS:
            names = section.names + (others if section is texts.MORE else ())
            rows = [(name, summarize("", name, commands[name])) for name in names if name in commands]
            with formatter.section(section.title):
                formatter.write_dl(rows, col_max=NAME_COLUMN)
        write_parameters(self.get_params(ctx), ctx, formatter)
        write_examples(texts.FIRST_EXAMPLES, formatter)
        formatter.write_paragraph()
        formatter.write_text("`redstart COMMAND --help` explains a command, with examples.")
        formatter.write_text(texts.DOCS)


def adopt(app: typer.Typer, cls: type[HelpfulGroup] = HelpfulGroup) -> None:
    """Gives an app and all that is registered in it this kind of help."""
    app.info.cls = cls
    for command in app.registered_commands:
        command.cls = HelpfulCommand
    for group in app.registered_groups:
        if group.typer_instance is not None:
            group.cls = HelpfulGroup
            adopt(group.typer_instance)


def path_of(ctx: Any) -> str:
    """The words of a command behind `redstart`."""
    names: list[str] = []
    while ctx.parent is not None:
        names.insert(0, ctx.info_name)
        ctx = ctx.parent
    return " ".join(names)


def visible(group: Any) -> list[tuple[str, Any]]:
    return [(name, command) for name, command in group.commands.items() if not command.hidden]


def summarize(group: str, name: str, command: Any) -> str:
    """The line of a command in a list: never cut."""
    if not group and name in texts.SUMMARIES:
        return texts.SUMMARIES[name]
    first = re.split(r"(?<=[.;:])\s", " ".join((command.help or "").split()), maxsplit=1)[0]
    return first.rstrip(".:;") + "." if first else ""


def flag_of(parameter: Any) -> str:
    """The name by which an option is known: its longest."""
    return max(parameter.opts, key=len)


def write_parameters(parameters: Iterable[Any], ctx: Any, formatter: Any) -> None:
    """The arguments, then the options by group; under one title where all of them are of one group."""
    arguments: list[tuple[str, str]] = []
    groups: dict[str, list[tuple[str, str]]] = {group: [] for group in texts.GROUPS}
    for parameter in parameters:
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            arguments.append((parameter.metavar or parameter.name.upper(), _without_range(record[1])))
        else:
            group = texts.GROUP_BY_FLAG.get(flag_of(parameter), texts.ADVANCED)
            groups[group].append(_in_plain_words(*record))
    filled = {title: rows for title, rows in groups.items() if rows}
    if len(filled) == 1:
        filled = {"Options": next(iter(filled.values()))}
    for title, rows in {"Arguments": arguments, **filled}.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows, col_max=NAME_COLUMN)


def write_examples(examples: Iterable[str], formatter: Any) -> None:
    lines = list(examples)
    if not lines:
        return
    with formatter.section("Examples" if len(lines) > 1 else "Example"):
        for line in lines:
            formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def unknown_command(group: str, typed: str, names: list[str]) -> Exception:
    """What to say of a word that is no command: what we call it, else what it may be a misspelling of."""
    from redstart.core.errors import ConfigError

    prefix = f"redstart {group}".strip()
    close = difflib.get_close_matches(typed, names, n=1, cutoff=0.6)
    if typed in texts.HABITS.get(group, {}):
        hint = texts.HABITS[group][typed]
    elif close:
        hint = f"did you mean `{prefix} {close[0]}`?"
    else:
        hint = f"`{prefix} --help` lists the commands"
    shown = f"{group} {typed}".strip()
    return ConfigError(f"there is no command {shown!r}", remedy=hint)


def _in_plain_words(names: str, text: str) -> tuple[str, str]:
    """The record of an option with a short placeholder; a long list of choices goes into the text."""
    text = _without_range(text)
    found = _PLACEHOLDER.search(names)
    if found is None:
        return names, text
    placeholder = _PLACEHOLDERS.get(found[1], found[1])
    if len(placeholder) > LONGEST_CHOICES:
        text = f"{text} One of: {placeholder.replace('|', ', ')}."
        placeholder = "NAME"
    return names[: found.start()] + placeholder, text


def _without_range(text: str) -> str:
    return _RANGE.sub("", text).rstrip()
