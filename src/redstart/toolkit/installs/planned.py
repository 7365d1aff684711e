"""Packages that the plan of a new program asks for: put into its manifest, judged, and installed before its tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from redstart.core.change import Snapshot
from redstart.core.noun import clip
from redstart.core.packages import Installed, PackageRequest
from redstart.core.run import RunState
from redstart.core.shell import Environment
from redstart.core.visible import one_line
from redstart.ports.bundle import Ports
from redstart.ports.install.port import Language
from redstart.toolkit.installs.asked import is_manifest, read
from redstart.toolkit.installs.names import is_built_in, normal
from redstart.toolkit.installs.wanted import Known, Wanted, install

MOST_PACKAGES = 10
"""How many packages a plan may ask for."""
_VERSIONED = {
    Language.python: re.compile(r"([\w.-]+)\s*(?:\[[\w\s,.-]*\])?\s*(?:[<>=!~].*)?"),
    Language.node: re.compile(r"((?:@[\w.~-]+/)?[\w.~-]+)(?:@\S+)?"),
}
"""A name, perhaps with a version after it. What is neither stays as it is, and is refused when it is judged."""
_DEPENDENCIES = re.compile(r"^dependencies = (\[.*\])$", re.MULTILINE)


def readable_requests(requests: Iterable[PackageRequest], language: Language) -> tuple[PackageRequest, ...]:
    """The requests by the names of the index, without versions, and without what the language brings along."""
    by_name: dict[str, PackageRequest] = {}
    for request in requests:
        text = clip(request.name.strip(), 100)
        found = _VERSIONED[language].fullmatch(text)
        name = normal(found[1], language) if found else text
        if name and not is_built_in(name, language):
            reason = clip(one_line(request.reason), 120).rstrip(".")
            by_name.setdefault(name, PackageRequest(name=name, reason=reason))
    return tuple(by_name.values())[:MOST_PACKAGES]


def language_of(run: RunState) -> Language:
    return Language.node if run.spec.suite.is_node else Language.python


def manifests_of(ports: Ports, snapshot: Snapshot) -> dict[str, bytes]:
    """The files that say what a project depends on; of the others only their names."""
    paths = ports.trees.files(snapshot)
    return {path: (ports.trees.read(snapshot, path) or b"") if is_manifest(path) else b"" for path in paths}


def with_planned_packages(run: RunState, ports: Ports) -> RunState:
    """The run with a base whose manifest names the packages that were installed for its plan."""
    names = run.packages
    added = add_dependencies(manifests_of(ports, run.spec.base), names, language_of(run)) if names else {}
    if not added:
        return run
    base = ports.trees.write(run.spec.base, added)
    return run.model_copy(update={"spec": run.spec.model_copy(update={"base": base})})


async def settle_packages(run: RunState, ports: Ports, names: Sequence[str]) -> Wanted | None:
    """Judge the packages of a plan and install them; None where nothing has to be installed.

    Raises what the installer raises.
    """
    packages = run.spec.packages
    before = manifests_of(ports, run.spec.base)
    added = add_dependencies(before, names, language_of(run))
    if packages is None or not added:
        return None
    environment = Environment.model_validate_json(ports.blobs.get(run.spec.suite.environment))
    known = Known(packages, run.approved, run.installed, before)
    return await install(ports.installer, environment, {**before, **added}, known)


def keep_installed(ports: Ports, wanted: Wanted, packages: Sequence[str] = ()) -> Installed:
    """What was installed, as a run carries it."""
    return Installed(
        asked=wanted.asked,
        environment=ports.blobs.put(wanted.environment.model_dump_json().encode()),
        locks={name: ports.blobs.put(text.encode()) for name, text in wanted.locks.items()},
        packages=tuple(packages),
    )


def add_dependencies(files: Mapping[str, bytes], names: Sequence[str], language: Language) -> dict[str, bytes]:
    """The project's manifest with these packages; empty where it names them already, or has no list to add them to."""
    present = {one.name for one in read(files).requirements if one.language is language and one.installed}
    missing = [name for name in names if normal(name, language) not in present]
    if not missing:
        return {}
    if language is Language.node:
        return _add_to_package_json(files.get("package.json", b""), missing)
    text = files.get("pyproject.toml", b"").decode()
    found = _DEPENDENCIES.search(text)
    if found is None:
        return {}
    listed = json.dumps([*json.loads(found[1]), *missing])
    return {"pyproject.toml": f"{text[: found.start(1)]}{listed}{text[found.end(1) :]}".encode()}


def _add_to_package_json(data: bytes, names: Sequence[str]) -> dict[str, bytes]:
    if not data:
        return {}
    described = json.loads(data)
    described["dependencies"] = {**described.get("dependencies", {}), **dict.fromkeys(names, "*")}
    return {"package.json": (json.dumps(described, indent=2, ensure_ascii=False) + "\n").encode()}
