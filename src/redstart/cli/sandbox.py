"""`redstart sandbox run`, `shell` and `build`: use the environment of the tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options
from redstart.cli.errors import print_error
from redstart.cli.output import echo, echo_output

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from redstart.app.wire import AppContext
    from redstart.app.workspace import RunGround

app = typer.Typer(
    no_args_is_help=True,
    help="Run a command or a shell in the sandbox that tests run in; build its Docker image.",
    rich_markup_mode=None,
)

TERMINAL_CLOSED_EXIT_CODE = 129
"""The exit code if the terminal is closed."""


@app.command(
    "run",
    context_settings={"allow_interspersed_args": False},
    short_help="Run a command in the sandbox of a project's tests.",
)
def run(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD...", help="Command to run.")],
    path: Annotated[Path, typer.Option("--path", help="The project's directory.")] = Path(),
    python: options.Python = None,
    unsafe_no_sandbox: options.Unsafe = False,
) -> None:
    """Run a command in the sandbox of a project's tests and return its exit code. Your files stay unchanged."""
    from redstart.app.probe_shell import describe_exit_cause, run_command

    async def go(context: AppContext, setup: RunGround) -> int:
        completed = await run_command(context, setup, tuple(command))
        echo_output(completed.output)
        if reason := describe_exit_cause(completed, setup.limits):
            print_error(reason)
        return completed.exit_code

    raise typer.Exit(_run_in_sandbox(path, python, unsafe_no_sandbox, go))


@app.command("shell", short_help="Open a shell in the sandbox of a project's tests.")
def shell(
    path: Annotated[Path, typer.Argument(help="The project's directory.")] = Path(),
    python: options.Python = None,
    unsafe_no_sandbox: options.Unsafe = False,
) -> None:
    """Open a shell in the sandbox of a project's tests. Your files stay unchanged; changes in it are discarded."""
    from redstart.core.errors import ConfigError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(
            "a shell needs a terminal", remedy="run a single command instead: redstart sandbox run -- CMD"
        )
    import asyncio

    from redstart.app.probe_shell import create_shell_limits, describe_exit_cause, describe_sandbox_session, run_shell
    from redstart.core.shell import ExitCause

    async def go(context: AppContext, setup: RunGround) -> int:
        echo(describe_sandbox_session(context, setup))
        try:
            completed = await run_shell(context, setup, sys.stdin.fileno(), sys.stdout.fileno())
        except asyncio.CancelledError:
            return TERMINAL_CLOSED_EXIT_CODE
        if completed.cause is ExitCause.timeout:
            print_error(describe_exit_cause(completed, create_shell_limits(setup)))
        return completed.exit_code

    raise typer.Exit(_run_in_sandbox(path, python, unsafe_no_sandbox, go))


@app.command("build", short_help="Build the Docker image for tests.")
def build(
    anew: Annotated[bool, typer.Option("--anew", help="Rebuild the image even if it exists.")] = False,
) -> None:
    """Build the Docker image for tests. It contains Python and Node, installed from this machine's package sources."""
    import asyncio
    import os

    from redstart.app.images import build_image

    image = asyncio.run(build_image(os.environ, rebuild=anew, say=lambda text: echo(text, err=True)))
    echo(f"{image.name} {'built' if image.new else 'already exists'}")


def _run_in_sandbox(
    path: Path, python: str | None, unsafe: bool, go: Callable[[AppContext, RunGround], Awaitable[int]]
) -> int:
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.wire import open_app
    from redstart.app.workspace import prepare_run_setup

    with open_app(configuration.load(project=path)) as context:

        async def run_with_setup() -> int:
            ready = context.with_sandbox(unsafe=unsafe)
            return await go(ready, prepare_run_setup(ready, path, python=python, choose=_refuse_choice))

        return asyncio.run(run_with_setup())


def _refuse_choice(folders: Sequence[str]) -> str:
    """Raise an error instead of asking, because the command may be part of a script."""
    from redstart.core.errors import ConfigError

    raise ConfigError(
        f"this repo has {len(folders)} test suites", remedy=f"choose one of these directories: {', '.join(folders)}"
    )
