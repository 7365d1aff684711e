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
from redstart.toolkit.installs.manager import RequestedItems
from redstart.toolkit.installs.manifest_tables import list_own_names
from redstart.toolkit.installs.names import hyphenate, load_names
from redstart.toolkit.installs.sides import PackageVersions

KEY = "python"
LOCK_NAME = "requirements.lock"
_DEPENDENCIES = re.compile(r"^dependencies = (\[.*\])$", re.MULTILINE)


class PythonPackages:
    key = KEY
    owner = "Python"
    lock_name = LOCK_NAME
    versioned = re.compile(r"([\w.-]+)\s*(?:\[[\w\s,.-]*\])?\s*(?:[<>=!~].*)?")
    needs_interpreter = True

    @property
    def versions(self) -> PackageVersions:
        from redstart.toolkit.languages.python.versions import PythonVersions

        return PythonVersions()

    def normalize(self, name: str) -> str:
        return hyphenate(name)

    def list_popular(self) -> Iterable[str]:
        return load_names(KEY)

    def is_built_in(self, name: str) -> bool:
        return name.replace("-", "_") in sys.stdlib_module_names

    def is_manifest(self, place: PurePosixPath) -> bool:
        has_requirements_name = place.stem.startswith("requirements") or place.parent.name == "requirements"
        return place.name == "pyproject.toml" or (has_requirements_name and place.suffix in (".txt", ".in"))

    def read(self, path: str, text: str, own: set[str]) -> RequestedItems:
        from redstart.toolkit.languages.python.requirements import parse_pyproject, parse_requirements

        if PurePosixPath(path).name != "pyproject.toml":
            yield from parse_requirements(path, text)
            return
        table = tomllib.loads(text)
        own |= set(list_own_names(table.get("project")))
        yield from parse_pyproject(path, table)

    def list_modules(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the modules at the root or in its `src`."""
        for path in paths:
            parts = PurePosixPath(path).parts
            module_parts = parts[1:] if parts[:1] == ("src",) else parts
            if len(module_parts) > 1 and module_parts[-1] == "__init__.py":
                yield module_parts[0]
            elif (
                len(module_parts) == 1
                and module_parts[0].endswith(".py")
                and module_parts[0] not in ("setup.py", "conftest.py")
            ):
                yield module_parts[0].removesuffix(".py")

    def add(self, files: Mapping[str, bytes], names: Sequence[str]) -> dict[str, bytes]:
        text = files.get("pyproject.toml", b"").decode()
        match = _DEPENDENCIES.search(text)
        if match is None:
            return {}
        dependencies = json.dumps([*json.loads(match[1]), *names])
        return {"pyproject.toml": f"{text[: match.start(1)]}{dependencies}{text[match.end(1) :]}".encode()}

    def prepare(self, request: InstallRequest, home: Path, environ: Mapping[str, str]) -> InstallResult:
        from redstart.toolkit.languages.python.package_install import prepare_python

        return prepare_python(request, home, request.python or sys.executable, environ)

    def with_packages(self, environment: Environment, prepared: InstallResult) -> Environment:
        folder = Path(prepared.folder)
        path = with_path(environment.variables, str(Path(prepared.python).parent))
        variables = {**path, "VIRTUAL_ENV": prepared.folder}
        # Set when Redstart's own interpreter stands in; here the project requested every plugin.
        variables.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)
        return environment.model_copy(
            update={
                "read_only": tuple(
                    dict.fromkeys((*environment.read_only, prepared.folder, *_find_base_prefix(folder)))
                ),
                "python": prepared.python,
                "variables": variables,
                "chosen": "installed for this project",
            }
        )


def _find_base_prefix(folder: Path) -> tuple[str, ...]:
    """Return the prefix of the environment's base interpreter; empty for the system's, which every sandbox shows."""
    lines = (folder / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    bin_dir = next((line.partition("=")[2].strip() for line in lines if line.startswith("home")), "")
    prefix = str(Path(bin_dir).parent) if bin_dir else ""
    return () if prefix in ("", "/", "/usr") else (prefix,)
