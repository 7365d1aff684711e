"""Options that several commands share."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli.output import echo

if TYPE_CHECKING:
    from redstart.core.learning import ReflectionPolicy
    from redstart.core.run import Level, Limits


def complete_run_id(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete the ID of a run, newest first, with a description. Offer nothing if the settings cannot be read."""
    return _complete(ctx, incomplete, unfinished=False)


def complete_unfinished_run_id(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete the ID of a run that can still be paused or cancelled."""
    return _complete(ctx, incomplete, unfinished=True)


def _complete(ctx: typer.Context, incomplete: str, *, unfinished: bool) -> list[tuple[str, str]]:
    from redstart.app.recent_runs import list_recent_runs
    from redstart.core.errors import RedstartError
    from redstart.core.safe_text import escape_line

    is_demo = bool(ctx.find_root().params.get("demo_store"))
    try:
        runs = list_recent_runs(incomplete, demo=is_demo, only_unfinished=unfinished)
        return [(run.run_id, escape_line(f"{run.mode} {run.repo}: {run.state}")) for run in runs]
    except RedstartError:
        return []


OLD_NAMES = {"max-iters": "max-attempts", "looks": "max-tool-calls", "no-cap": "no-limit"}
"""Current names of the flags of earlier versions, without dashes."""


def to_current_name(flag: str) -> str:
    """Return the current name of a flag. Old names are accepted everywhere and shown nowhere."""
    return OLD_NAMES.get(flag, flag)


class StepName(StrEnum):
    """Copies the names of `Step`: its import is slow, and help must be fast. A test compares them."""

    reproduce = "reproduce"
    plan = "plan"
    retrieve = "retrieve"
    audit = "audit"
    patch = "patch"
    apply = "apply"
    check = "check"
    test = "test"
    reflect = "reflect"
    remember = "remember"
    decide = "decide"


class EngineName(StrEnum):
    langgraph = "langgraph"
    inline = "inline"


SANDBOXES = ("auto", "bwrap", "docker", "seatbelt", "process")
"""The names of the sandboxes, copied for the same reason. A plug-in is `plugin:NAME`."""


def _parse_sandbox_name(text: str) -> str:
    if text in SANDBOXES or text.startswith("plugin:"):
        return text
    raise typer.BadParameter(f"{text!r} is not one of {', '.join(map(repr, SANDBOXES))}, or plugin:NAME")


class LevelName(StrEnum):
    """Copies the names of `Level`, for the same reason."""

    quick = "quick"
    standard = "standard"
    strict = "strict"


class ReflectName(StrEnum):
    """Copies the names of `ReflectionPolicy`, for the same reason."""

    auto = "auto"
    always = "always"
    never = "never"


Reflect = Annotated[
    ReflectName | None,
    typer.Option(
        "--reflect",
        help="When the strong model explains why an attempt failed: from the second failure on (auto, the default), "
        "after every failure (always), or never.",
    ),
]
Verify = Annotated[
    LevelName | None,
    typer.Option("--verify", help="How thoroughly to verify a fix (default standard)."),
]
KeepRelated = Annotated[
    bool,
    typer.Option("--keep-related", help="Keep changes of stubs, changelogs and docs, which no test needs, in a patch."),
]
Model = Annotated[
    str | None,
    typer.Option(
        "-m", "--model", help="Model as provider:name, e.g. openai:gpt-6.1-sol or ollama:llama4; see `redstart models`."
    ),
]
MaxAttempts = Annotated[int | None, typer.Option("--max-attempts", min=1, help="Stop after N attempts (default 5).")]
MaxUsd = Annotated[float | None, typer.Option("--max-usd", min=0, help="Spend at most N dollars (default 2).")]
MaxMinutes = Annotated[float | None, typer.Option("--max-minutes", min=0, help="Stop after N minutes (default 30).")]
StopAfter = Annotated[
    StepName | None, typer.Option("--stop-after", help="Stop after this step; `redstart resume` continues.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON Lines instead of text.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Print more about each step.")]
Unsafe = Annotated[bool, typer.Option("--unsafe-no-sandbox", help="Run the tests without a sandbox if none works.")]
SandboxKind = Annotated[
    str | None,
    typer.Option(
        "--sandbox",
        parser=_parse_sandbox_name,
        metavar=f"[{'|'.join(SANDBOXES)}|plugin:NAME]",
        help="Sandbox for the tests (default auto); `process` needs --unsafe-no-sandbox.",
        autocompletion=lambda: list(SANDBOXES),
    ),
]
SandboxImage = Annotated[
    str | None,
    typer.Option(
        "--sandbox-image", help="Docker image to run the tests in (default: the image from `redstart sandbox build`)."
    ),
]
SandboxCpus = Annotated[
    float | None, typer.Option("--sandbox-cpus", min=0, help="Processors the tests may use; 0 for all.")
]
SandboxMemory = Annotated[
    str | None, typer.Option("--sandbox-memory", help="Memory the tests may use, for example 1g (default 4g).")
]
Engine = Annotated[EngineName, typer.Option("--engine", help="Engine that runs the steps.")]
RunId = Annotated[
    str | None,
    typer.Argument(
        metavar="ID",
        help="Run ID, or its first characters (default: the last run in this directory).",
        autocompletion=complete_run_id,
    ),
]
NamedRunId = Annotated[
    str, typer.Argument(metavar="ID", help="Run ID, or its first characters.", autocompletion=complete_run_id)
]
UnfinishedRunId = Annotated[
    str,
    typer.Argument(metavar="ID", help="Run ID, or its first characters.", autocompletion=complete_unfinished_run_id),
]
BaseRef = Annotated[
    str,
    typer.Option(
        "--base",
        metavar="REF",
        help="Branch, tag or commit that the change starts from (default: the main branch).",
    ),
]
OneJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
ListAllTests = Annotated[bool, typer.Option("-v", "--verbose", help="List every test.")]
TestCommand = Annotated[
    str | None, typer.Option("--test-cmd", help="Command that runs the tests, for example 'pytest tests/unit'.")
]
Keyword = Annotated[
    str, typer.Option("-k", help="Fix only the failing tests that match this expression, as with pytest -k.")
]
Scope = Annotated[
    list[str] | None, typer.Option("--scope", help="Directory or glob that edits may change; repeatable.")
]
Junit = Annotated[str, typer.Option("--junit", help="JUnit XML file that --test-cmd writes, relative to the project.")]
TestFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--tests",
        metavar="GLOB",
        help="Glob of test files with unusual names, so that no edit may change them; repeatable.",
    ),
]
NoInput = Annotated[bool, typer.Option("--no-input", help="Never ask a question; stop with an error instead.")]
AllRed = Annotated[
    bool,
    typer.Option("--all-red", help="Make every failing test a target; set none aside as not this code's fault."),
]
Python = Annotated[str | None, typer.Option("--python", help="Python interpreter of the project's environment.")]
Hint = Annotated[str, typer.Option("--hint", help="Advice for the model, in plain English.")]
UntilGreen = Annotated[
    bool, typer.Option("--until-green", help="Remove the default limit on attempts. All other limits still apply.")
]
Session = Annotated[
    bool | None,
    typer.Option(
        "--session/--single",
        help="Let the model try its edits with tools before it submits, or ask for all edits in one answer. "
        "The default depends on the model.",
    ),
]
Fresh = Annotated[
    bool,
    typer.Option(
        "--fresh", help="Start each attempt from your code. By default, an attempt keeps what the last one fixed."
    ),
]
Candidates = Annotated[
    int,
    typer.Option(
        "--candidates",
        min=1,
        max=8,
        help="Let N child runs try the same fix, within the limits of the run. The first verified one ends the others.",
    ),
]
Escalate = Annotated[
    bool,
    typer.Option("--escalate", help="With --candidates: the fast model writes all patches but the last candidate's."),
]
ChooseSmallest = Annotated[
    bool,
    typer.Option(
        "--choose",
        help="With --candidates: wait for all and take the smallest patch. You are asked if two behave differently.",
    ),
]
Approve = Annotated[
    bool,
    typer.Option("--approve", help="Install requested packages without asking, unless one looks suspicious."),
]
MaxToolCalls = Annotated[
    int | None,
    typer.Option(
        "--max-tool-calls",
        min=0,
        max=50,
        help="Maximum number of tool calls before each model answer; 0 for none. The default depends on the model.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Run the tests, print the plan and its limits, and stop.")]
Detach = Annotated[
    bool, typer.Option("--detach", help="Submit the run to the fleet and return; follow it with `redstart runs watch`.")
]
Apply = Annotated[bool, typer.Option("--apply", help="Apply a verified patch to your working tree without asking.")]
PatchFile = Annotated[Path | None, typer.Option("--patch", help="Write the patch to this file.")]


def require_folder(path: Path) -> Path:
    """Return the path. Raise `ConfigError` if it is not a directory, before any other check of the command."""
    if not path.is_dir():
        from redstart.core.errors import ConfigError

        problem = "is not a directory" if path.exists() else "does not exist"
        raise ConfigError(f"{path} {problem}", remedy="give the directory of the project")
    return path


def can_ask_user(*, silent: bool) -> bool:
    """Return whether a person can be asked. `silent` means that they do not want to be asked."""
    return sys.stdin.isatty() and not silent


def resolve_level(default: Level, level_name: LevelName | None) -> Level:
    return type(default)(level_name.value) if level_name else default


def build_sandbox_flags(
    kind: str | None, image: str | None, cpus: float | None, memory: str | None
) -> dict[str, object]:
    """Return the given values, by the names of their settings."""
    values = {"backend": kind, "image": image, "cpus": cpus, "memory": memory}
    return {f"sandbox.{name}": value for name, value in values.items() if value is not None}


def reflect_flag(policy: ReflectName | None) -> dict[str, object]:
    """Return the setting for `--reflect`, if it is given."""
    return {} if policy is None else {"reflect": policy.value}


def keep_related_flag(*, keep_related: bool) -> dict[str, object]:
    """Return the setting for `--keep-related`, if it is given."""
    return {"keep_related": True} if keep_related else {}


def resolve_reflection_policy(policy: ReflectName | None) -> ReflectionPolicy | None:
    from redstart.core.learning import ReflectionPolicy

    return None if policy is None else ReflectionPolicy(policy.value)


def resolve_limits(
    defaults: Limits, attempts: int | None, usd: float | None = None, minutes: float | None = None
) -> Limits:
    """Return the default limits, overridden by the given ones."""
    values = {"attempts": attempts, "usd": usd, "minutes": minutes}
    return defaults.model_copy(update={name: value for name, value in values.items() if value is not None})


EnvFile = Annotated[
    Path | None,
    typer.Option("--env-file", metavar="FILE", help="Read API keys, and nothing else, from this file."),
]


def use_env_file(file: Path | None, folder: Path) -> None:
    """Load the API keys of the file into this process and print their names. Without a file, note an unused `.env`.

    Call this before the settings are loaded. The messages go to standard error: they are not part of any result.
    """
    if file is None:
        if (folder / ".env").is_file():
            echo("note: .env is not loaded; to read API keys from it, add --env-file .env", err=True)
        return
    import os

    from redstart.app.settings import load
    from redstart.app.settings.env_file import list_key_variables, take_keys
    from redstart.core.frozen import format_count

    loaded_names = take_keys(file, list_key_variables(load()), os.environ)
    names = f" ({', '.join(loaded_names)})" if loaded_names else ""
    echo(f"{file}: read {format_count(len(loaded_names), 'API key')}{names} and nothing else", err=True)
