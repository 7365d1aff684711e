"""Packages of Node.js, from the registry that npm is configured for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from redstart.core.shell import Environment
from redstart.ports.install.port import InstallRequest, InstallResult
from redstart.toolkit.installs.environment import with_path
from redstart.toolkit.installs.manager import Asks
from redstart.toolkit.installs.names import listed
from redstart.toolkit.installs.tables import as_object, own_names

KEY = "node"
LOCK_NAME = "package-lock.json"
MODULES = "node_modules"
BUILT_IN = """
    assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain
    events fs http http2 https inspector module net os path perf_hooks process punycode querystring readline repl
    sqlite stream string_decoder sys test timers tls trace_events tty url util v8 vm wasi worker_threads zlib
"""
"""The modules of Node.js itself."""


class NodePackages:
    key = KEY
    owner = "Node.js"
    lock_name = LOCK_NAME
    versioned = re.compile(r"((?:@[\w.~-]+/)?[\w.~-]+)(?:@\S+)?")
    needs_interpreter = False

    def normal(self, name: str) -> str:
        return name.lower()

    def popular(self) -> Iterable[str]:
        return listed(KEY)

    def is_built_in(self, name: str) -> bool:
        return name in BUILT_IN.split()

    def is_manifest(self, place: PurePosixPath) -> bool:
        return place.name in ("package.json", LOCK_NAME)

    def read(self, path: str, text: str, own: set[str]) -> Asks:
        from redstart.toolkit.languages.node.manifests import of_lock, of_package

        table = as_object(json.loads(text))
        if PurePosixPath(path).name == LOCK_NAME:
            yield from of_lock(path, table)
            return
        own |= set(own_names(table))
        yield from of_package(path, table)

    def modules(self, paths: Iterable[str]) -> Iterator[str]:
        return iter(())

    def add(self, files: Mapping[str, bytes], names: Sequence[str]) -> dict[str, bytes]:
        data = files.get("package.json", b"")
        if not data:
            return {}
        described = json.loads(data)
        described["dependencies"] = {**described.get("dependencies", {}), **dict.fromkeys(names, "*")}
        return {"package.json": (json.dumps(described, indent=2, ensure_ascii=False) + "\n").encode()}

    def prepare(self, request: InstallRequest, home: Path, environ: Mapping[str, str]) -> InstallResult:
        from redstart.toolkit.languages.node.installing import prepare_node

        return prepare_node(request, home, environ)

    def with_packages(self, environment: Environment, prepared: InstallResult) -> Environment:
        modules = Path(prepared.folder) / MODULES
        return environment.model_copy(
            update={
                "read_only": tuple(dict.fromkeys((*environment.read_only, prepared.folder))),
                "variables": with_path(environment.variables, str(modules / ".bin"), last=True),
                "links": {**environment.links, MODULES: str(modules)},
            }
        )
