"""Keep the byte code that pytest makes of its installed plugins: without it, each run rewrites their assertions again.

The byte code comes from a run of its own that sees the environment but no file of the project. Each later run gets a
read-only copy. So no code under test can change what another run loads.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from redstart.core.change import Snapshot
from redstart.core.shell import OUT, Completed, Environment, Execution, SandboxLimits
from redstart.ports.sandbox.port import Sandbox, SandboxLack, SandboxSession, open_sandbox_session
from redstart.toolkit.suites.request import SuiteRequest, add_importable_files, read_sandbox_file

PYTEST_PLUGIN, MODULE = "redstart_pytest", "redstart_bytecode"
"""Our plugin that every readable run of pytest loads, and the one that is loaded right after it."""
NO_PLUGINS = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
"""The variable with which pytest loads no installed plugin."""
MODULE_FILE = "redstart_bytecode.py"
KEPT = "bytecode.txt"
MOST_KEPT = 10
SITE_FOLDERS = ("site-packages", "dist-packages")
_SITE_PATTERNS = tuple(f"{place}/python*/{name}" for place in ("lib", "local/lib") for name in SITE_FOLDERS)


class BytecodeSandbox:
    """A sandbox that gives runs of pytest the byte code of the installed plugins. It changes nothing else."""

    def __init__(self, inner: Sandbox, folder: Path, create_empty: Callable[[], Snapshot]) -> None:
        """`folder` keeps the byte code, and `create_empty` returns a snapshot without files."""
        self._inner, self._create_empty = inner, create_empty
        self.tier = inner.tier
        self._store = _BytecodeStore(folder)
        self._locks: dict[str, asyncio.Lock] = {}

    @property
    def lacks(self) -> tuple[SandboxLack, ...]:
        return getattr(self._inner, "lacks", ())

    async def run(self, execution: Execution) -> Completed:
        return await self._inner.run(await self.add_bytecode(execution))

    @asynccontextmanager
    async def open_session(self, environment: Environment, limits: SandboxLimits) -> AsyncGenerator[SandboxSession]:
        async with open_sandbox_session(self._inner, environment, limits) as session:
            yield _BytecodeSession(self, session)

    async def add_bytecode(self, execution: Execution) -> Execution:
        """Add the byte code to an execution that starts pytest with our plugin; record it first if it is not kept."""
        if PYTEST_PLUGIN not in execution.argv or execution.environment.variables.get(NO_PLUGINS):
            return execution
        text = await self._find_or_record(execution)
        if not text:
            return execution
        end = execution.argv.index(PYTEST_PLUGIN) + 1
        argv = (*execution.argv[:end], "-p", MODULE, *execution.argv[end:])
        files = {**execution.files_in, **_read_module(), KEPT: text}
        return execution.model_copy(update={"argv": argv, "files_in": files})

    async def _find_or_record(self, execution: Execution) -> str:
        key = compute_key(execution.environment)
        if (kept := self._store.find(key)) is not None:
            return kept
        lock = self._locks.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                text = self._store.find(key)
                if text is None:
                    text = await self._record(execution) if has_plugins(execution.environment) else None
                    self._store.save(key, text)
                return text or ""
        finally:
            self._locks.pop(key, None)

    async def _record(self, execution: Execution) -> str | None:
        """Start pytest without the project. Return what it leaves, empty if it rewrites nothing; None if it fails."""
        environment = execution.environment
        request = SuiteRequest((environment.python, "-m", "pytest", "-p", MODULE), {"PYTEST_ADDOPTS": ""}, {}, (KEPT,))
        request = add_importable_files(request, (MODULE_FILE,), environment)
        recording = Execution(
            argv=request.argv,
            snapshot=self._create_empty(),
            environment=environment.model_copy(update={"copies": (), "links": {}, "git_objects": "", "services": ()}),
            limits=execution.limits,
            variables={**request.variables, "REDSTART_BYTECODE": f"{OUT}/{KEPT}"},
            files_in=request.files_in,
            collect=request.collect,
        )
        return (await self._inner.run(recording)).files.get(KEPT)


class _BytecodeSession:
    def __init__(self, sandbox: BytecodeSandbox, session: SandboxSession) -> None:
        self._sandbox, self._session = sandbox, session

    async def run(self, execution: Execution) -> Completed:
        return await self._session.run(await self._sandbox.add_bytecode(execution))


class _BytecodeStore:
    """The byte code by the state of the environment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._texts: dict[str, str] = {}

    def find(self, key: str) -> str | None:
        """Return the byte code, empty if there is none to use; None if that is not known yet."""
        if key not in self._texts:
            with suppress(OSError, UnicodeDecodeError):
                self._texts[key] = self._get_path(key).read_text(encoding="ascii")
        return self._texts.get(key)

    def save(self, key: str, text: str | None) -> None:
        """Keep what was recorded. None, which means that nothing could be recorded, is kept in memory only."""
        self._texts[key] = text or ""
        if text is None:
            return
        path = self._get_path(key)
        self._folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(text, encoding="ascii")
        part.replace(path)
        files = sorted(self._folder.glob("*.txt"), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in files[MOST_KEPT:]:
            file.unlink(missing_ok=True)

    def _get_path(self, key: str) -> Path:
        return self._folder / f"{key}.txt"


def compute_key(environment: Environment) -> str:
    """Compute the key of an environment. It is another one as soon as a package is installed or removed."""
    states = [*_read_module().values(), environment.python, environment.variables.get("PYTHONPATH", "")]
    for path in (Path(environment.python), *_list_site_folders(environment)):
        with suppress(OSError):
            state = path.stat()
            states.append(f"{path} {state.st_size} {state.st_mtime_ns}")
    return hashlib.sha256(json.dumps(states).encode()).hexdigest()[:32]


def has_plugins(environment: Environment) -> bool:
    """Whether an installed package contains a plugin of pytest."""
    for folder in _list_site_folders(environment):
        for file in folder.glob("*.dist-info/entry_points.txt"):
            with suppress(OSError):
                if b"[pytest11]" in file.read_bytes():
                    return True
    return False


def _read_module() -> dict[str, str]:
    return {MODULE_FILE: read_sandbox_file(MODULE_FILE)}


def _list_site_folders(environment: Environment) -> Iterator[Path]:
    roots = (Path(environment.python).parent.parent, *map(Path, environment.read_only))
    for root in dict.fromkeys(roots):
        if root.name in SITE_FOLDERS:
            yield root
        for pattern in _SITE_PATTERNS:
            yield from sorted(root.glob(pattern))
