"""Packages of Node.js, from the registry that npm is configured for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from redstart.core.shell import Environment
from redstart.ports.install.port import InstallRequest, InstallResult
from redstart.toolkit.installs.environment import with_path
from redstart.toolkit.installs.manager import RequestedItems
from redstart.toolkit.installs.manifest_tables import as_object, list_own_names
from redstart.toolkit.installs.names import load_names

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
    versions = None

    def normalize(self, name: str) -> str:
        return name.lower()

    def list_popular(self) -> Iterable[str]:
        return load_names(KEY)

    def is_built_in(self, name: str) -> bool:
        return name in BUILT_IN.split()

    def is_manifest(self, place: PurePosixPath) -> bool:
        return place.name in ("package.json", LOCK_NAME)

    def read(self, path: str, text: str, own: set[str]) -> RequestedItems:
        from redstart.toolkit.languages.node.manifests import check_lock, parse_manifest

        table = as_object(json.loads(text))
        if PurePosixPath(path).name == LOCK_NAME:
            yield from check_lock(path, table)
            return
        own |= set(list_own_names(table))
        yield from parse_manifest(path, table)

    def list_modules(self, paths: Iterable[str]) -> Iterator[str]:
        return iter(())

    def add(self, files: Mapping[str, bytes], names: Sequence[str]) -> dict[str, bytes]:
        data = files.get("package.json", b"")
        if not data:
            return {}
        manifest = json.loads(data)
        manifest["dependencies"] = {**manifest.get("dependencies", {}), **dict.fromkeys(names, "*")}
        return {"package.json": (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode()}

    def prepare(self, request: InstallRequest, home: Path, environ: Mapping[str, str]) -> InstallResult:
        from redstart.toolkit.languages.node.package_install import prepare_node

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
