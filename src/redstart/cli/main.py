"""The command `redstart`."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from typing import Annotated

import typer

from redstart.cli import (
    apply,
    audit,
    config,
    create,
    demo,
    doctor,
    fix,
    fleet,
    graph,
    improve,
    memory,
    models,
    options,
    resume,
    runs,
    sandbox,
    show,
    stats,
    triage,
    verify,
)
from redstart.cli import eval as evaluation
from redstart.cli.errors import print_error, report_error
from redstart.cli.help import TAGLINE, WIDEST, FirstScreen, adopt
from redstart.cli.output import echo, print_defect

app = typer.Typer(
    name="redstart",
    help=TAGLINE,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich's help takes longer to load than the rest of the command
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": WIDEST,
        "token_normalize_func": options.to_current_name,
    },
)
app.command("fix")(fix.fix)
app.command("create")(create.create)
app.command("improve")(improve.improve)
app.command("audit")(audit.audit)
app.command("verify")(verify.verify)
app.command("triage")(triage.triage)
app.command("resume")(resume.resume)
app.command("show")(show.show)
app.command("apply")(apply.apply)
app.command("undo")(apply.undo)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.command("init")(config.init)
app.command("graph")(graph.graph)
app.command("worker")(fleet.worker)
app.command("stats")(stats.stats)
runs.app.command("prune")(runs.prune)
app.add_typer(runs.app, name="runs")
app.add_typer(config.app, name="config")
app.add_typer(models.app, name="models")
app.add_typer(sandbox.app, name="sandbox")
app.add_typer(fleet.app, name="fleet")
app.add_typer(evaluation.app, name="eval")
app.add_typer(memory.app, name="memory")
adopt(app, FirstScreen)

RUN_CODE = {"fix", "create", "improve", "verify", "triage", "resume", "sandbox", "worker", "eval"}
"""Commands that start a sandbox, which can limit more in its own control group."""
COMPARE = ["models", "compare"]
"""Another one, in a group of which the other commands run no code."""
ONLY_HELP = {"-h", "--help", "--version"}
NO_WINDOWS = ("Windows is not supported", "install WSL2 with `wsl --install` and run redstart in it")


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version

        echo(f"redstart {version('redstart')}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    demo_store: Annotated[
        bool, typer.Option("--demo", help="Use the runs of the last `redstart demo` instead of your own.")
    ] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Handle the options before every command."""
    if demo_store:
        from redstart.app.demo.store import use_store

        use_store(os.environ, ctx.invoked_subcommand or "")


def is_refused(platform: str, arguments: Sequence[str]) -> bool:
    """Return whether this system can only show help. `platform` has the form of `sys.platform`."""
    before_command = itertools.takewhile(lambda argument: argument != "--", arguments)
    return platform == "win32" and bool(arguments) and not ONLY_HELP.intersection(before_command)


def select_app(arguments: Sequence[str]) -> typer.Typer:
    """Return the app with only the command or group that the arguments start with: preparing all commands is slow.

    Returns the whole app if the first argument is not one of their names.
    """
    name = arguments[0] if arguments else ""
    commands = [command for command in app.registered_commands if command.name == name]
    groups = [group for group in app.registered_groups if group.name == name]
    if not commands and not groups:
        return app
    selected_app = copy(app)
    selected_app.registered_commands, selected_app.registered_groups = commands, groups
    return selected_app


def main() -> None:
    """Run the command. Exit with one of the documented exit codes, whatever happens."""
    sys.excepthook = print_defect
    try:
        _run()
    except SystemExit as end:
        if "temporalio" in sys.modules or end.code == sandbox.TERMINAL_CLOSED_EXIT_CODE:
            _leave_at_once(end.code)
        raise


def _leave_at_once(code: object) -> None:
    """Exit without shutting down the interpreter.

    A shutdown can lose the exit code: threads of the Temporal library may still call into it, which aborts the process,
    and output that a closed terminal did not take makes the code 120.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _runs_code(arguments: Sequence[str]) -> bool:
    return bool(RUN_CODE.intersection(arguments[:1])) or arguments[:2] == COMPARE


def _run() -> None:
    if is_refused(sys.platform, sys.argv[1:]):
        print_error(*NO_WINDOWS)
        sys.exit(3)
    if sys.platform == "linux" and _runs_code(sys.argv[1:]) and not ONLY_HELP.intersection(sys.argv):
        from redstart.app.wire import leave_shared_group

        leave_shared_group()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = select_app(sys.argv[1:])(standalone_mode=False)
    except KeyboardInterrupt:
        sys.exit(130)
    except typer.Abort:
        print_error("the question was not answered")
        sys.exit(1)
    except Exception as error:
        code = report_error(error)
        if code is None:
            raise
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
