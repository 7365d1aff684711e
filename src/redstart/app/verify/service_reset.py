"""Reset the services that the tests may reach, with the user's own command, outside the sandbox."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import tempfile
from pathlib import Path

from redstart.core.errors import PortError
from redstart.core.frozen import clip

TIMEOUT_SECONDS = 60.0
_PASSED_ON = re.compile(r"PATH|HOME|USER|LANG|LC_ALL|TMPDIR|XDG_RUNTIME_DIR|(?:DOCKER|COMPOSE|PG|MYSQL|REDIS)\w*")
"""Variables that a program needs to find a service and its settings."""


class ServicesNotReset(PortError):
    message = "The services of the tests could not be reset."


async def reset_services(command: str, folder: Path) -> None:
    """Run the command in that directory, without a shell. Raises `ServicesNotReset` if it fails or takes too long."""
    name = f"`{command}` (sandbox.services_reset)"
    environ = {key: value for key, value in os.environ.items() if _PASSED_ON.fullmatch(key)}
    # A file, not a pipe: a server that the command starts may keep its output open.
    with tempfile.TemporaryFile() as output:
        try:
            process = await asyncio.create_subprocess_exec(
                *shlex.split(command),
                cwd=folder,
                env=environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        except (OSError, ValueError) as error:
            raise ServicesNotReset(f"{name} cannot be started: {error}", remedy="correct the setting") from error
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                code = await process.wait()
        except TimeoutError as error:
            problem = f"{name} did not finish within {TIMEOUT_SECONDS:.0f} seconds"
            raise ServicesNotReset(problem, remedy="choose a faster command") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if code:
            output.seek(0)
            lines = output.read().decode("utf-8", "replace").strip().splitlines() or [""]
            raise ServicesNotReset(f"{name} exited with {code}", remedy=clip(lines[-1], 300))


def describe_services(services: tuple[str, ...], command: str) -> str:
    """Describe how the suites of a verification share services; empty if there are none."""
    if not services:
        return ""
    done = f"`{command}` ran before each suite" if command else "nothing reset them between the suites"
    return f"the tests share {', '.join(services)}: the suites ran one after another, and {done}"
