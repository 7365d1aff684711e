"""Manage Python packages from the index that pip is configured to use."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from redstart.core.shell import Environment
from redstart.ports.install.port import InstallRequest, InstallResult
from redstart.toolkit.installs.environment import with_path
from redstart.toolkit.installs.manager import Asks
from redstart.toolkit.installs.names import hyphenated, listed
from redstart.toolkit.installs.tables import own_names

KEY = "python"
LOCK_NAME = "requirements.lock"
_DEPENDENCIES = re.compile(r"^dependencies = (\[.*\])$", re.MULTILINE)


class PythonPackages:
    key = KEY
    owner = "Python"
    lock_name = LOCK_NAME
    versioned = re.compile(r"([\w.-]+)\s*(?:\[[\w\s,.-]*\])?\s*(?:[<>=!~].*)?")
    needs_interpreter = True

    def normal(self, name: str) -> str:
        return hyphenated(name)

    def popular(self) -> Iterable[str]:
        return listed(KEY)

    def is_built_in(self, name: str) -> bool:
        return name.replace("-", "_") in sys.stdlib_module_names

    def is_manifest(self, place: PurePosixPath) -> bool:
        named = place.stem.startswith("requirements") or place.parent.name == "requirements"
        return place.name == "pyproject.toml" or (named and place.suffix in (".txt", ".in"))

    def read(self, path: str, text: str, own: set[str]) -> Asks:
        from redstart.toolkit.languages.python.requirements import of_pyproject, of_requirements

        if PurePosixPath(path).name != "pyproject.toml":
            yield from of_requirements(path, text)
            return
        table = tomllib.loads(text)
        own |= set(own_names(table.get("project")))
        yield from of_pyproject(path, table)

    def modules(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the modules at the root or in its `src`."""
        for path in paths:
            parts = PurePosixPath(path).parts
            inner = parts[1:] if parts[:1] == ("src",) else parts
            if len(inner) > 1 and inner[-1] == "__init__.py":
                yield inner[0]
            elif len(inner) == 1 and inner[0].endswith(".py") and inner[0] not in ("setup.py", "conftest.py"):
                yield inner[0].removesuffix(".py")

    def add(self, files: Mapping[str, bytes], names: Sequence[str]) -> dict[str, bytes]:
        text = files.get("pyproject.toml", b"").decode()
        found = _DEPENDENCIES.search(text)
        if found is None:
            return {}
        listed = json.dumps([*json.loads(found[1]), *names])
        return {"pyproject.toml": f"{text[: found.start(1)]}{listed}{text[found.end(1) :]}".encode()}

    def prepare(self, request: InstallRequest, home: Path, environ: Mapping[str, str]) -> InstallResult:
        from redstart.toolkit.languages.python.installing import prepare_python

        return prepare_python(request, home, request.python or sys.executable, environ)

    def with_packages(self, environment: Environment, prepared: InstallResult) -> Environment:
        folder = Path(prepared.folder)
        path = with_path(environment.variables, str(Path(prepared.python).parent))
        variables = {**path, "VIRTUAL_ENV": prepared.folder}
        # Set when Redstart's own interpreter stands in; here the project requested every plugin.
        variables.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)
        return environment.model_copy(
            update={
                "read_only": tuple(dict.fromkeys((*environment.read_only, prepared.folder, *_base(folder)))),
                "python": prepared.python,
                "variables": variables,
                "chosen": "installed for this project",
            }
        )


def _base(folder: Path) -> tuple[str, ...]:
    """Return the prefix of the environment's base interpreter; empty for the system's, which every sandbox shows."""
    lines = (folder / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    found = next((line.partition("=")[2].strip() for line in lines if line.startswith("home")), "")
    prefix = str(Path(found).parent) if found else ""
    return () if prefix in ("", "/", "/usr") else (prefix,)
