"""A Python index and an npm registry on loopback that also record the payloads that call home."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, cast
from urllib.parse import unquote


class File(NamedTuple):
    name: str
    data: bytes
    sha256: str
    yanked: bool


class FakeIndex:
    """A fake index. `files[index][package]` lists the files of a package; `packages[name]` is an npm packument."""

    def __init__(self, canaries: Path) -> None:
        self.canaries = canaries
        self.files: dict[str, dict[str, list[File]]] = {}
        self.packages: dict[str, dict[str, Any]] = {}
        self.tarballs: dict[str, bytes] = {}
        self.called: list[str] = []
        """Payloads that called home."""
        self.asked: list[str] = []
        """Every requested path."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _create_handler(self))

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def build_url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/{path}"

    def seen(self) -> set[str]:
        """Return the payloads that ran, known by the file they left or by their call."""
        return {path.name for path in self.canaries.iterdir()} | set(self.called)

    def publish(
        self, package: str, name: str, data: bytes, *, index: str = "main", sha256: str = "", yanked: bool = False
    ) -> None:
        file = File(name, data, sha256 or hashlib.sha256(data).hexdigest(), yanked)
        self.files.setdefault(index, {}).setdefault(package, []).append(file)

    def publish_npm(self, manifest: dict[str, Any], data: bytes, *, integrity: str = "") -> None:
        name, version = manifest["name"], manifest["version"]
        file = f"{name.rpartition('/')[2]}-{version}.tgz"
        self.tarballs[f"{name}/-/{file}"] = data
        promised = integrity or "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        dist = {"tarball": self.build_url(f"npm/{name}/-/{file}"), "integrity": promised}
        table = self.packages.setdefault(name, {"name": name, "dist-tags": {}, "versions": {}})
        table["versions"][version] = {**manifest, "dist": dist}
        table["dist-tags"]["latest"] = version

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Return the content type and the content at a path, or None if the path is unknown."""
        clean_path = unquote(path).partition("?")[0].strip("/")
        self.asked.append(clean_path)
        top, _, package_path = clean_path.partition("/")
        if top == "canary":
            self.called.append(package_path)
            return "text/plain", b""
        if top == "npm":
            if package_path in self.tarballs:
                return "application/octet-stream", self.tarballs[package_path]
            package_entry = self.packages.get(package_path)
            return ("application/json", json.dumps(package_entry).encode()) if package_entry else None
        pages = self.files.get(top, {})
        kind, _, name = package_path.partition("/")
        if kind == "simple" and name in pages:
            return "text/html", self._render_page(top, pages[name]).encode()
        if kind == "file":
            package_entry = next((file for files in pages.values() for file in files if file.name == name), None)
            return ("application/octet-stream", package_entry.data) if package_entry else None
        return None

    def _render_page(self, index: str, files: list[File]) -> str:
        links = "".join(
            f'<a href="/{index}/file/{html.escape(file.name)}#sha256={file.sha256}"'
            f"{' data-yanked=broken' if file.yanked else ''}>{html.escape(file.name)}</a><br>\n"
            for file in files
        )
        return f"<!DOCTYPE html><html><body>{links}</body></html>"


def _create_handler(index: FakeIndex) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            response = index.answer(self.path)
            kind, data = response or ("text/plain", b"nothing here")
            self.send_response(200 if response else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            cast("None", (format, args))

    return Handler
