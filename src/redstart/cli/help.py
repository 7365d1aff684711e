"""Format help: one screen of commands by purpose, in order of use, and examples."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

TAGLINE = "Redstart fixes failing tests and proves the fix, or says why it could not."
DOCS = "Documentation: docs/tutorial.md and docs/reference/cli.md in the Redstart repository."

COMMON, LIMITS, MODEL, SANDBOX, ADVANCED = "Common options", "Limits", "Model", "Sandbox", "Advanced"
GROUPS = (COMMON, LIMITS, MODEL, SANDBOX, ADVANCED)

_FLAGS_BY_GROUP = {
    COMMON: (
        "--issue -k --test-cmd --scope --hint --apply --dry-run --patch --no-input --json --verbose --help --out "
        "--goal-file --lang --kind --spec-tests --approve --goal --metric --better --since --fail-on --format "
        "--baseline --no-baseline --write-baseline --show --say --accept --reject --force --attempt --proof "
        "--branch --cheat --online --yes --here --all --cassette --after --path --anew --workers --folder --pool "
        "--name --runs --memory --repo --by --skill --files --signature --types --export --database --html "
        "--count --most --hide-tests --demo --mode --version --install-completion --show-completion --older-than "
        "--keep --partial --base --head --staged --require --level --mutants --markdown --report-junit --attest "
        "--recheck --log --bisect --base-junit"
    ),
    LIMITS: (
        "--max-attempts --max-cycles --max-usd --max-minutes --until-green --no-limit "
        "--max-tool-calls --pause --limit --first --history --parallel --at-once --scan --repeats"
    ),
    MODEL: "--model --session --fresh --candidates --escalate --choose --reflect --env-file --no-llm --change-model",
    SANDBOX: "--sandbox --sandbox-image --sandbox-cpus --sandbox-memory --unsafe-no-sandbox --python",
    ADVANCED: (
        "--verify --keep-related --junit --tests --stop-after --detach --engine --seeds --seed --repos "
        "--project --all-red"
    ),
}
GROUP_BY_FLAG = {flag: group for group, flags in _FLAGS_BY_GROUP.items() for flag in flags.split()}
"""The help group of each option, by its longest name. A test fails for an option that is missing here."""


class CommandSection(NamedTuple):
    """A titled section of the first screen."""

    title: str
    names: tuple[str, ...]


EVERYDAY = CommandSection(
    "Everyday commands",
    ("fix", "create", "improve", "audit", "verify", "triage", "apply", "undo", "show", "resume", "runs", "doctor"),
)
MORE_COMMANDS = CommandSection(
    "More commands", ("demo", "init", "config", "models", "memory", "stats", "eval", "graph")
)
OPERATORS = CommandSection("Commands for operators", ("worker", "fleet", "sandbox"))
SECTIONS = (EVERYDAY, MORE_COMMANDS, OPERATORS)

SUMMARIES = {
    "fix": "Fix failing tests and save the fix as a patch.",
    "create": "Create a tested program from a goal.",
    "improve": "Improve a program in cycles; each change must pass the tests.",
    "audit": "Report security problems and bugs; change nothing.",
    "verify": "Check what a change's tests prove and that nothing got worse.",
    "triage": "Say whose fault each failing test is: yours, or not.",
    "apply": "Apply a run's patch to your working tree.",
    "undo": "Undo an earlier `redstart apply`.",
    "show": "Show what a run did: its attempts, diff and proof.",
    "resume": "Resume a run where it stopped, or answer its question.",
    "runs": "List, watch, pause, cancel, replay and export runs.",
    "doctor": "Check that this machine has what Redstart needs.",
    "demo": "Watch Redstart fix a bug, without an API key or network.",
    "init": "Propose a redstart.toml for a project.",
    "config": "Show and change settings; see where each value comes from.",
    "models": "List the available models with price; compare two on your repo.",
    "memory": "Search, approve or delete what earlier runs learned.",
    "stats": "Summarize past runs: outcomes, attempts, time and cost.",
    "eval": "Measure Redstart on tasks with known solutions.",
    "graph": "Draw the steps of a run and the transitions between them.",
    "worker": "Work on the runs of a fleet until stopped.",
    "fleet": "Start and inspect a fleet of workers.",
    "sandbox": "Run a command or a shell in the sandbox; build its image.",
}
"""The line of each command on the first screen."""

FIRST_EXAMPLES = ("redstart demo", "redstart fix -m openai:gpt-6.1-sol")
EXAMPLES: dict[str, tuple[str, ...]] = {
    "fix": (
        "redstart fix -m anthropic:claude-sonnet-5",
        "redstart fix . tests/test_cart.py --max-usd 1",
        'redstart fix --issue "Totals are rounded down" --dry-run',
    ),
    "create": (
        'redstart create "A command that counts words in a file" -o wordcount',
        "redstart create --goal-file goal.md -o app --max-usd 5",
    ),
    "improve": (
        'redstart improve --goal "Make parsing faster" --max-minutes 20',
        'redstart improve . --metric "python bench.py" --better smaller --max-usd 3',
    ),
    "audit": ("redstart audit src --fail-on high", "redstart audit --since main --format sarif"),
    "verify": ("redstart verify", "redstart verify --base origin/main --require proof"),
    "triage": ("redstart triage", "redstart triage --base origin/main --bisect"),
    "resume": ("redstart resume", 'redstart resume 3f2a --say "The bug is in the parser"'),
    "show": ("redstart show", "redstart show 3f2a --proof"),
    "apply": ("redstart apply", "redstart apply 3f2a --branch fix-totals"),
    "undo": ("redstart undo",),
    "demo": ("redstart demo", "redstart demo --cheat"),
    "doctor": ("redstart doctor", "redstart doctor --online"),
    "init": ("redstart init", "redstart init services/api --yes"),
    "graph": ("redstart graph", "redstart graph --mode create --format mermaid"),
    "worker": ("redstart worker --pool both",),
    "stats": ("redstart stats --since 7d",),
    "runs list": ("redstart runs list --here",),
    "runs replay": ("redstart runs replay 3f2a",),
    "runs export": ("redstart runs export 3f2a --cassette calls.json",),
    "runs fork": ("redstart runs fork 3f2a --after plan",),
    "runs watch": ("redstart runs watch 3f2a",),
    "runs pause": ("redstart runs pause 3f2a",),
    "runs cancel": ("redstart runs cancel 3f2a",),
    "runs prune": ("redstart runs prune --older-than 30 --dry-run",),
    "config show": ("redstart config show",),
    "config schema": ("redstart config schema",),
    "config get": ("redstart config get models.strong",),
    "config set": ("redstart config set limits.usd 5",),
    "config path": ("redstart config path",),
    "config edit": ("redstart config edit",),
    "models": ("redstart models", "redstart models --all"),
    "models compare": (
        "redstart models compare openai:gpt-6.1-sol ollama:llama4",
        "redstart models compare openai:gpt-6.1-sol ollama:llama4 --html models.html",
    ),
    "sandbox run": ("redstart sandbox run -- python -m pytest -q",),
    "sandbox shell": ("redstart sandbox shell",),
    "sandbox build": ("redstart sandbox build",),
    "fleet up": ("redstart fleet up --workers 2",),
    "fleet status": ("redstart fleet status",),
    "fleet register": ("redstart fleet register",),
    "fleet promote": ("redstart fleet promote",),
    "eval run": ("redstart eval run quixbugs -m openai:gpt-6.1-sol --first 10",),
    "eval report": ("redstart eval report quixbugs",),
    "eval compare": ("redstart eval compare before after",),
    "eval export-predictions": ("redstart eval export-predictions quixbugs",),
    "eval check-tasks": ("redstart eval check-tasks quixbugs",),
    "eval verify": ("redstart eval verify quixbugs",),
    "eval mutate": ("redstart eval mutate . --out tasks.jsonl",),
    "eval mine": ("redstart eval mine . --out tasks.jsonl --most 20",),
    "memory list": ("redstart memory list",),
    "memory search": ('redstart memory search "unsupported operand"',),
    "memory show": ("redstart memory show 7c1d",),
    "memory approve": ("redstart memory approve 7c1d",),
    "memory forget": ("redstart memory forget 7c1d",),
    "memory stats": ("redstart memory stats",),
    "memory export": ("redstart memory export --skill skills",),
    "memory graph": ("redstart memory graph --files",),
    "memory mirror": ("redstart memory mirror bolt://localhost:7687",),
}
"""Examples by command. A test parses each example, and fails for a command without one."""

HABITS = {
    "": {
        "run": "redstart fix",
        "test": "redstart fix --dry-run runs the tests and changes nothing",
        "tests": "redstart fix --dry-run runs the tests and changes nothing",
        "repair": "redstart fix",
        "solve": "redstart fix",
        "new": "redstart create",
        "build": "redstart create",
        "generate": "redstart create",
        "history": "redstart runs list",
        "status": "redstart runs list",
        "list": "redstart runs list",
        "ls": "redstart runs list",
        "ps": "redstart runs list",
        "log": "redstart show",
        "logs": "redstart show",
        "diff": "redstart show",
        "proof": "redstart show --proof",
        "continue": "redstart resume",
        "retry": "redstart resume",
        "revert": "redstart undo",
        "rollback": "redstart undo",
        "merge": "redstart apply",
        "commit": "redstart apply --branch NAME",
        "watch": "redstart runs watch",
        "pause": "redstart runs pause ID",
        "cancel": "redstart runs cancel ID",
        "stop": "redstart runs cancel ID",
        "kill": "redstart runs cancel ID",
        "replay": "redstart runs replay",
        "prune": "redstart runs prune",
        "clean": "redstart runs prune",
        "help": "redstart --help",
        "version": "redstart --version",
        "login": "set your provider's key, for example OPENAI_API_KEY, then run redstart doctor",
        "auth": "set your provider's key, for example OPENAI_API_KEY, then run redstart doctor",
        "init-config": "redstart init",
        "setup": "redstart init",
        "settings": "redstart config show",
        "check": "redstart verify",
        "scan": "redstart audit",
        "flaky": "redstart triage",
        "blame": "redstart triage --bisect",
        "bisect": "redstart triage --bisect",
        "review": "redstart verify, or redstart audit",
        "lint": "redstart audit",
        "lessons": "redstart memory list",
        "bench": "redstart eval run",
    },
    "config": {"get": "redstart config show", "list": "redstart config show", "ls": "redstart config show"},
    "runs": {
        "ls": "redstart runs list",
        "show": "redstart show ID",
        "log": "redstart show ID",
        "resume": "redstart resume ID",
        "stop": "redstart runs cancel ID",
        "rm": "redstart runs prune",
        "delete": "redstart runs prune",
        "clean": "redstart runs prune",
    },
    "memory": {"ls": "redstart memory list", "rm": "redstart memory forget ID", "delete": "redstart memory forget ID"},
}
"""What to type instead, by command group (the first is `redstart` itself) and typed word."""


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
    """A command whose help shows options in groups, and examples."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write_parameters(self.get_params(ctx), ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.upper() for piece in super().collect_usage_pieces(ctx)]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_examples(EXAMPLES.get(get_command_path(ctx), ()), formatter)


class HelpfulGroup(TyperGroup):
    """A group whose help shows whole sentences, and that suggests commands for words people type from habit."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write_parameters(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_examples(EXAMPLES.get(get_command_path(ctx), ()), formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [
            (name, summarize(get_command_path(ctx), name, command)) for name, command in list_visible_commands(self)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows, col_max=NAME_COLUMN)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not ctx.resilient_parsing and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise create_unknown_command_error(
                get_command_path(ctx), args[0], [name for name, _ in list_visible_commands(self)]
            )
        return super().resolve_command(ctx, args)


class FirstScreen(HelpfulGroup):
    """The group `redstart` itself, with the everyday commands first."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write_usage("redstart", "COMMAND [OPTIONS]")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(TAGLINE)
        commands = dict(list_visible_commands(self))
        section_names = {name for section in SECTIONS for name in section.names}
        other_names = tuple(name for name in commands if name not in section_names)
        for section in SECTIONS:
            names = section.names + (other_names if section is MORE_COMMANDS else ())
            rows = [(name, summarize("", name, commands[name])) for name in names if name in commands]
            with formatter.section(section.title):
                formatter.write_dl(rows, col_max=NAME_COLUMN)
        write_parameters(self.get_params(ctx), ctx, formatter)
        write_examples(FIRST_EXAMPLES, formatter)
        formatter.write_paragraph()
        formatter.write_text("`redstart COMMAND --help` explains a command, with examples.")
        formatter.write_text(DOCS)


def adopt(app: typer.Typer, cls: type[HelpfulGroup] = HelpfulGroup) -> None:
    """Use this kind of help for an app and everything registered in it."""
    app.info.cls = cls
    for command in app.registered_commands:
        command.cls = HelpfulCommand
    for group in app.registered_groups:
        if group.typer_instance is not None:
            group.cls = HelpfulGroup
            adopt(group.typer_instance)


def get_command_path(ctx: Any) -> str:
    """Return the words of a command after `redstart`."""
    names: list[str] = []
    while ctx.parent is not None:
        names.insert(0, ctx.info_name)
        ctx = ctx.parent
    return " ".join(names)


def list_visible_commands(group: Any) -> list[tuple[str, Any]]:
    return [(name, command) for name, command in group.commands.items() if not command.hidden]


def summarize(group: str, name: str, command: Any) -> str:
    """Return the line of a command in a list. It is never cut."""
    if not group and name in SUMMARIES:
        return SUMMARIES[name]
    sentence = re.split(r"(?<=[.;:])\s", " ".join((command.help or "").split()), maxsplit=1)[0]
    return sentence.rstrip(".:;") + "." if sentence else ""


def get_longest_flag(parameter: Any) -> str:
    """Return the longest name of an option, by which it is known."""
    return max(parameter.opts, key=len)


def write_parameters(parameters: Iterable[Any], ctx: Any, formatter: Any) -> None:
    """Write the arguments, then the options by group. If all options are in one group, its title is Options."""
    arguments: list[tuple[str, str]] = []
    groups: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
    for parameter in parameters:
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            arguments.append((parameter.metavar or parameter.name.upper(), _without_range(record[1])))
        else:
            group = GROUP_BY_FLAG.get(get_longest_flag(parameter), ADVANCED)
            groups[group].append(_simplify_help_record(*record))
    nonempty_groups = {title: rows for title, rows in groups.items() if rows}
    if len(nonempty_groups) == 1:
        nonempty_groups = {"Options": next(iter(nonempty_groups.values()))}
    for title, rows in {"Arguments": arguments, **nonempty_groups}.items():
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


def create_unknown_command_error(group: str, typed: str, names: list[str]) -> Exception:
    """Make the error for an unknown command: suggest our name for it, else the closest name."""
    from redstart.core.errors import ConfigError

    prefix = f"redstart {group}".strip()
    close = difflib.get_close_matches(typed, names, n=1, cutoff=0.6)
    if typed in HABITS.get(group, {}):
        hint = HABITS[group][typed]
    elif close:
        hint = f"did you mean `{prefix} {close[0]}`?"
    else:
        hint = f"`{prefix} --help` lists the commands"
    command_name = f"{group} {typed}".strip()
    return ConfigError(f"unknown command {command_name!r}", remedy=hint)


def _simplify_help_record(names: str, text: str) -> tuple[str, str]:
    """Return the help record of an option with a short placeholder. Move a long list of choices into the text."""
    text = _without_range(text)
    match = _PLACEHOLDER.search(names)
    if match is None:
        return names, text
    placeholder = _PLACEHOLDERS.get(match[1], match[1])
    if len(placeholder) > LONGEST_CHOICES:
        text = f"{text} One of: {placeholder.replace('|', ', ')}."
        placeholder = "NAME"
    return names[: match.start()] + placeholder, text


def _without_range(text: str) -> str:
    return _RANGE.sub("", text).rstrip()
