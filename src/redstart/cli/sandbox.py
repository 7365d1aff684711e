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

    from redstart.app.ground import RunGround
    from redstart.app.wire import AppContext

app = typer.Typer(
    no_args_is_help=True,
    help="Run a command or a shell in the sandbox that tests run in; build its Docker image.",
    rich_markup_mode=None,
)

GONE = 129
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
    """Run a command in the sandbox of a project's tests and return its exit code. Your files stay unchanged.

    Example: redstart sandbox run -- python -m pytest -x
    """
    from redstart.app.probe_shell import run_command, what_ended_it

    async def go(house: AppContext, ground: RunGround) -> int:
        done = await run_command(house, ground, tuple(command))
        echo_output(done.output)
        if why := what_ended_it(done, ground.limits):
            print_error(why)
        return done.exit_code

    raise typer.Exit(_inside(path, python, unsafe_no_sandbox, go))


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

    from redstart.app.probe_shell import run_shell, shell_limits, what_ended_it, whereabouts
    from redstart.core.shell import ExitCause

    async def go(house: AppContext, ground: RunGround) -> int:
        echo(whereabouts(house, ground))
        try:
            done = await run_shell(house, ground, sys.stdin.fileno(), sys.stdout.fileno())
        except asyncio.CancelledError:
            return GONE
        if done.cause is ExitCause.timeout:
            print_error(what_ended_it(done, shell_limits(ground)))
        return done.exit_code

    raise typer.Exit(_inside(path, python, unsafe_no_sandbox, go))


@app.command("build", short_help="Build the Docker image for tests.")
def build(
    anew: Annotated[bool, typer.Option("--anew", help="Rebuild the image even if it exists.")] = False,
) -> None:
    """Build the Docker image for tests, with Python and Node, from this machine's package sources."""
    import asyncio
    import os

    from redstart.app.images import build_image

    built = asyncio.run(build_image(os.environ, anew=anew, say=lambda words: echo(words, err=True)))
    echo(f"{built.name} {'built' if built.new else 'already exists'}")


def _inside(path: Path, python: str | None, unsafe: bool, go: Callable[[AppContext, RunGround], Awaitable[int]]) -> int:
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.ground import take_ground
    from redstart.app.wire import open_house

    with open_house(configuration.load(project=path)) as house:

        async def within() -> int:
            ready = house.with_sandbox(unsafe=unsafe)
            return await go(ready, take_ground(ready, path, python=python, choose=_which))

        return asyncio.run(within())


def _which(folders: Sequence[str]) -> str:
    """Raise an error instead of asking, because the command may be part of a script."""
    from redstart.core.errors import ConfigError

    raise ConfigError(
        f"this repo has {len(folders)} test suites", remedy=f"name one of these directories: {', '.join(folders)}"
    )
