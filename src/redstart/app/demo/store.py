"""The store of the last demo. It is separate, so that its runs never mix with the user's."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator, MutableMapping
from contextlib import contextmanager
from pathlib import Path

from redstart.app import settings as configuration
from redstart.app.settings.store import DEFAULT_TENANT, DEMO
from redstart.core.errors import ConfigError

EXPLORED_BY = ("show", "runs", "memory", "stats")
"""Commands that read a store and start nothing."""


@contextmanager
def replace_store() -> Generator[Path]:
    """Yield an empty home for a demo. At the end, it replaces the home of the last demo."""
    home = configuration.load().home
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{DEMO}-", dir=home) as folder:
        demo_home = Path(folder) / DEMO
        demo_home.mkdir()
        yield demo_home
        shutil.rmtree(home / DEMO, ignore_errors=True)
        demo_home.rename(home / DEMO)


def use_store(environ: MutableMapping[str, str], command: str) -> None:
    """Make the settings use the store of the last demo. Raises `ConfigError` if that is not possible."""
    if command not in EXPLORED_BY:
        raise ConfigError(f"--demo does not work with `{command}`", remedy=f"use it with {', '.join(EXPLORED_BY)}")
    demo_home = configuration.load().home / DEMO
    if not demo_home.is_dir():
        raise ConfigError("no demo has run yet", remedy="redstart demo")
    environ.update(
        REDSTART_HOME=str(demo_home), REDSTART_STORE__URL="", REDSTART_STORE__BLOBS="", REDSTART_TENANT=DEFAULT_TENANT
    )
