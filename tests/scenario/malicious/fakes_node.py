"""Fake npm packages: tarballs built here, each with a payload that leaves a mark when it runs."""

from __future__ import annotations

import io
import json
import shlex
import tarfile
from typing import Any

from fake_index import FakeIndex


def payload(index: FakeIndex, case: str) -> str:
    """Return one line of JavaScript that leaves the mark of `case`, as a file and as a call."""
    folder, mark = str(index.canaries), str(index.canaries / case)
    return (
        f"const f=require('fs');f.mkdirSync({folder!r},{{recursive:true}});f.writeFileSync({mark!r},'');"
        f"require('http').get({index.address(f'canary/{case}')!r}).on('error',()=>0)"
    )


def tarball(
    manifest: dict[str, Any], files: dict[str, str] | None = None, odd: tuple[tarfile.TarInfo, ...] = ()
) -> bytes:
    """Return the archive of a package. The extra members have no content: devices, links, paths that escape."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for path, text in {"package.json": json.dumps(manifest), "index.js": "", **(files or {})}.items():
            info = tarfile.TarInfo(f"package/{path}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
        for info in odd:
            archive.addfile(info, io.BytesIO(b"") if info.isreg() else None)
    return made.getvalue()


def publish_node(index: FakeIndex) -> None:
    _publish(index, "acme-good", files={"index.js": "module.exports = 42\n"})
    for case in ("expresss", "@type/node"):
        _publish(index, case, **_scripts(index, case, "postinstall"))
    for script in ("preinstall", "install", "postinstall"):
        case = f"acme-{script}"
        _publish(index, case, **_scripts(index, case, script))
        _publish(index, f"acme-pulls-{script}", dependencies={case: "1.0.0"})
    _publish(index, "acme-bin", bin={"node": "run.js"}, files={"run.js": payload(index, "npm-acme-bin")})
    _publish(index, "acme-runner", bin={"jest": "run.js"}, files={"run.js": payload(index, "acme-runner")})
    _publish(index, "acme-pulls-gyp", dependencies={"acme-gyp": "1.0.0"})
    gyp = json.dumps({"targets": [{"target_name": "x", "type": "none", "actions": [_action(index, "acme-gyp")]}]})
    _publish(index, "acme-gyp", gypfile=True, files={"binding.gyp": gyp})
    _publish(index, "acme-pulls-git", dependencies={"acme-git": "git+https://127.0.0.1:1/acme.git"})
    away = index.address("npm/acme-postinstall/-/acme-postinstall-1.0.0.tgz")
    _publish(index, "acme-pulls-remote", dependencies={"acme-postinstall": away})
    _publish(index, "acme-wraps", dependencies={"expresss": "1.0.0"})
    _publish(index, "acme-borrows", dependencies={"lodash": "npm:acme-postinstall@1.0.0"})
    _bundles(index)
    _archives(index)


def _scripts(index: FakeIndex, case: str, script: str) -> dict[str, Any]:
    return {"scripts": {script: f"node -e {shlex.quote(payload(index, case.replace('/', '-')))}"}}


def _action(index: FakeIndex, case: str) -> dict[str, Any]:
    return {"action_name": "x", "inputs": [], "outputs": ["x"], "action": ["node", "-e", payload(index, case)]}


def _publish(
    index: FakeIndex,
    name: str,
    *,
    files: dict[str, str] | None = None,
    odd: tuple[tarfile.TarInfo, ...] = (),
    integrity: str = "",
    **manifest: Any,
) -> None:
    table = {"name": name, "version": "1.0.0", **manifest}
    if {"preinstall", "install", "postinstall"} & set(table.get("scripts", {})) or table.get("gypfile"):
        table["hasInstallScript"] = True
    index.publish_npm(table, tarball(table, files, odd), integrity=integrity)


def _bundles(index: FakeIndex) -> None:
    """Publish a package that bundles another package with an install script."""
    inner = {"name": "acme-hidden", "version": "1.0.0", **_scripts(index, "acme-hidden", "postinstall")}
    files = {"node_modules/acme-hidden/package.json": json.dumps(inner), "node_modules/acme-hidden/index.js": ""}
    more: dict[str, Any] = {"dependencies": {"acme-hidden": "1.0.0"}, "bundleDependencies": ["acme-hidden"]}
    _publish(index, "acme-bundle", files=files, **more)
    _publish(index, "acme-pulls-bundle", dependencies={"acme-bundle": "1.0.0"})


def _archives(index: FakeIndex) -> None:
    device = tarfile.TarInfo("package/device")
    device.type, device.devmajor, device.devminor = tarfile.CHRTYPE, 1, 3
    _publish(index, "acme-device", odd=(device,))
    link = tarfile.TarInfo("package/link")
    link.type, link.linkname = tarfile.SYMTYPE, str(index.canaries)
    _publish(index, "acme-link", odd=(link,))
    away = tarfile.TarInfo("package/" + "../" * 12 + str(index.canaries / "acme-away").lstrip("/"))
    _publish(index, "acme-away", odd=(away,))
    _publish(index, "acme-hash", integrity="sha512-" + "A" * 86 + "==")
    table = {"name": "lodash", "version": "1.0.0"}
    index.publish_npm({"name": "acme-other", "version": "1.0.0"}, tarball(table))
