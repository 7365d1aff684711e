"""Fake npm packages: tarballs built here, each with a payload that leaves a mark when it runs."""

from __future__ import annotations

import io
import json
import shlex
import tarfile
from typing import Any

from fake_index import FakeIndex


def build_payload(index: FakeIndex, case: str) -> str:
    """Return one line of JavaScript that leaves the mark of `case`, as a file and as a call."""
    folder, mark = str(index.canaries), str(index.canaries / case)
    return (
        f"const f=require('fs');f.mkdirSync({folder!r},{{recursive:true}});f.writeFileSync({mark!r},'');"
        f"require('http').get({index.build_url(f'canary/{case}')!r}).on('error',()=>0)"
    )


def build_tarball(
    manifest: dict[str, Any], files: dict[str, str] | None = None, extra_members: tuple[tarfile.TarInfo, ...] = ()
) -> bytes:
    """Return the archive of a package. The extra members have no content: devices, links, paths that escape."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, text in {"package.json": json.dumps(manifest), "index.js": "", **(files or {})}.items():
            info = tarfile.TarInfo(f"package/{path}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
        for info in extra_members:
            archive.addfile(info, io.BytesIO(b"") if info.isreg() else None)
    return buffer.getvalue()


def publish_node(index: FakeIndex) -> None:
    _publish(index, "acme-good", files={"index.js": "module.exports = 42\n"})
    for case in ("expresss", "@type/node"):
        _publish(index, case, **_build_scripts(index, case, "postinstall"))
    for script in ("preinstall", "install", "postinstall"):
        case = f"acme-{script}"
        _publish(index, case, **_build_scripts(index, case, script))
        _publish(index, f"acme-pulls-{script}", dependencies={case: "1.0.0"})
    _publish(index, "acme-bin", bin={"node": "run.js"}, files={"run.js": build_payload(index, "npm-acme-bin")})
    _publish(index, "acme-runner", bin={"jest": "run.js"}, files={"run.js": build_payload(index, "acme-runner")})
    _publish(index, "acme-pulls-gyp", dependencies={"acme-gyp": "1.0.0"})
    gyp = json.dumps({"targets": [{"target_name": "x", "type": "none", "actions": [_build_action(index, "acme-gyp")]}]})
    _publish(index, "acme-gyp", gypfile=True, files={"binding.gyp": gyp})
    _publish(index, "acme-pulls-git", dependencies={"acme-git": "git+https://127.0.0.1:1/acme.git"})
    tarball_url = index.build_url("npm/acme-postinstall/-/acme-postinstall-1.0.0.tgz")
    _publish(index, "acme-pulls-remote", dependencies={"acme-postinstall": tarball_url})
    _publish(index, "acme-wraps", dependencies={"expresss": "1.0.0"})
    _publish(index, "acme-borrows", dependencies={"lodash": "npm:acme-postinstall@1.0.0"})
    _publish_bundles(index)
    _publish_archives(index)


def _build_scripts(index: FakeIndex, case: str, script: str) -> dict[str, Any]:
    return {"scripts": {script: f"node -e {shlex.quote(build_payload(index, case.replace('/', '-')))}"}}


def _build_action(index: FakeIndex, case: str) -> dict[str, Any]:
    return {"action_name": "x", "inputs": [], "outputs": ["x"], "action": ["node", "-e", build_payload(index, case)]}


def _publish(
    index: FakeIndex,
    name: str,
    *,
    files: dict[str, str] | None = None,
    extra_members: tuple[tarfile.TarInfo, ...] = (),
    integrity: str = "",
    **manifest: Any,
) -> None:
    table = {"name": name, "version": "1.0.0", **manifest}
    if {"preinstall", "install", "postinstall"} & set(table.get("scripts", {})) or table.get("gypfile"):
        table["hasInstallScript"] = True
    index.publish_npm(table, build_tarball(table, files, extra_members), integrity=integrity)


def _publish_bundles(index: FakeIndex) -> None:
    """Publish a package that bundles another package with an install script."""
    inner_manifest = {"name": "acme-hidden", "version": "1.0.0", **_build_scripts(index, "acme-hidden", "postinstall")}
    files = {
        "node_modules/acme-hidden/package.json": json.dumps(inner_manifest),
        "node_modules/acme-hidden/index.js": "",
    }
    fields: dict[str, Any] = {"dependencies": {"acme-hidden": "1.0.0"}, "bundleDependencies": ["acme-hidden"]}
    _publish(index, "acme-bundle", files=files, **fields)
    _publish(index, "acme-pulls-bundle", dependencies={"acme-bundle": "1.0.0"})


def _publish_archives(index: FakeIndex) -> None:
    device = tarfile.TarInfo("package/device")
    device.type, device.devmajor, device.devminor = tarfile.CHRTYPE, 1, 3
    _publish(index, "acme-device", extra_members=(device,))
    link = tarfile.TarInfo("package/link")
    link.type, link.linkname = tarfile.SYMTYPE, str(index.canaries)
    _publish(index, "acme-link", extra_members=(link,))
    escaping_member = tarfile.TarInfo("package/" + "../" * 12 + str(index.canaries / "acme-away").lstrip("/"))
    _publish(index, "acme-away", extra_members=(escaping_member,))
    _publish(index, "acme-hash", integrity="sha512-" + "A" * 86 + "==")
    table = {"name": "lodash", "version": "1.0.0"}
    index.publish_npm({"name": "acme-other", "version": "1.0.0"}, build_tarball(table))
