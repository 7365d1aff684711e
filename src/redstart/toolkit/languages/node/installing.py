"""Installs Node.js packages: lock, fetch, inspect, then install offline without running any script."""

from __future__ import annotations

import base64
import binascii
import json
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, cast

from redstart.core.errors import ConfigError, PortError
from redstart.ports.install.port import InstallRequest, InstallResult, Package, PackageRefusal
from redstart.toolkit.installs.judge import suspicion
from redstart.toolkit.installs.names import hyphenated, popular
from redstart.toolkit.installs.stage import StageResult, finish, key_of, place_of, run
from redstart.toolkit.installs.tables import as_table
from redstart.toolkit.languages.node.packages import KEY, LOCK_NAME, MODULES
from redstart.toolkit.languages.node.tarballs import faults_of

AT_ONCE = 50
"""How many packages one process fetches."""
_SAFE = (
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--loglevel=error",
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=1000",
    "--install-links=false",
    "--global=false",
    "--include=dev",
    "--include=optional",
    "--git=/nonexistent/git",
    "--allow-git=none",
    "--allow-remote=none",
    "--allow-file=none",
    "--allow-directory=none",
)
"""Options that forbid scripts and every source but the registry; only newer npm versions know the last four."""
_UNREACHABLE = re.compile(r"\b(ECONNREFUSED|ENOTFOUND|ETIMEDOUT|EAI_AGAIN|ECONNRESET|ERR_SOCKET_TIMEOUT)\b")
_CODE = re.compile(r"npm error code (\w+)")
_NOT_FOUND = re.compile(r"npm error 404\s+'?((?:@[^/@\s']+/)?[^@\s']+)@")
_NO_VERSION = re.compile(r"No matching version found for ((?:@[^/@\s]+/)?[^@\s]+)@")
_NOT_TAKEN = re.compile(r"Refusing to fetch \"((?:@[^/@\s]+/)?[^@\s\"]+)@")
_ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "i686": "ia32"}


class LockEntry(NamedTuple):
    """One package of a lock."""

    name: str
    version: str
    integrity: str
    here: bool
    """Whether it is for this machine; npm skips other packages."""
    fault: str
    """Why it cannot come from the registry, as the end of a sentence that begins with its name."""


def prepare_node(request: InstallRequest, home: Path, environ: Mapping[str, str]) -> InstallResult:
    """Do the work of `Installer.prepare`; `home` contains the environments. Modules are in their `node_modules`."""
    npm = _npm(environ)
    trusted = {name.lower() for name in request.trusted}
    cache = home / "npm-cache"
    with tempfile.TemporaryDirectory(prefix="redstart-install-") as scratch:
        stage = Path(scratch)
        (stage / "package.json").write_text(_manifest(request), encoding="utf-8")
        base = [*npm, "--cache", str(cache), *_SAFE]
        made = run([*base, "install", "--package-lock-only"], stage, environ)
        if made.code:
            return InstallResult(refused=tuple(_refusals(made)))
        lock = stripped((stage / LOCK_NAME).read_text(encoding="utf-8"))
        entries = list(entries_of(lock))
        refused = list(dict.fromkeys(_refused(entries, trusted, request.own)))
        if refused:
            return InstallResult(refused=tuple(refused))
        here = [entry for entry in entries if entry.here]
        for start in range(0, len(here), AT_ONCE):
            named = dict.fromkeys(f"{item.name}@{item.version}" for item in here[start : start + AT_ONCE])
            fetched = run([*base, "cache", "add", *named], stage, environ)
            if fetched.code:
                return InstallResult(refused=tuple(_refusals(fetched)))
        refused = list(dict.fromkeys(_looked_into(here, cache, trusted)))
        if refused:
            return InstallResult(refused=tuple(refused))
        return _installed(base, stage, home, lock, here, environ)


def _installed(
    base: list[str], stage: Path, home: Path, lock: str, here: list[LockEntry], environ: Mapping[str, str]
) -> InstallResult:
    version = run([_node(environ), "--version"], stage, environ).output.strip()
    key = key_of(lock, version, sys.platform, platform.machine())
    with place_of(home, key) as (folder, complete):
        if not complete:
            shutil.copyfile(stage / "package.json", folder / "package.json")
            (folder / LOCK_NAME).write_text(lock, encoding="utf-8")
            done = run([*base, "ci", "--offline"], folder, environ)
            if "code EUSAGE" in done.output:
                # If a registry lacks packages for other systems, npm rejects its own lock.
                done = run([*base, "install", "--offline", "--no-save"], folder, environ)
            if done.code:
                return InstallResult(refused=tuple(_refusals(done)))
            (folder / MODULES).mkdir(exist_ok=True)
            if strangers := _strangers(folder, here):
                return InstallResult(refused=strangers)
            finish(folder)
    packages = tuple(Package(name=item.name, version=item.version, hash=item.integrity) for item in here)
    return InstallResult(key=key, folder=str(folder), lock=lock, packages=packages)


def _strangers(folder: Path, here: list[LockEntry]) -> tuple[PackageRefusal, ...]:
    """List packages that were installed without inspection; npm's own list says what is installed."""
    listed = folder / MODULES / ".package-lock.json"
    known = {item.integrity for item in here}
    there = entries_of(listed.read_text(encoding="utf-8")) if listed.is_file() else ()
    return tuple(
        PackageRefusal(name=item.name, reason=f"{item.name} is not in the lock.")
        for item in there
        if item.integrity not in known
    )


def stripped(lock: str) -> str:
    """Remove the download addresses from a lock (the hashes identify the packages) and the directory's name, which
    npm uses as the project's."""
    table = {name: item for name, item in as_table(json.loads(lock)).items() if name not in ("name", "version")}
    packages = {key: as_table(entry) for key, entry in as_table(table.get("packages")).items()}
    kept = {key: {name: item for name, item in entry.items() if name != "resolved"} for key, entry in packages.items()}
    for name in ("name", "version"):
        kept.get("", {}).pop(name, None)
    # Keep an address that is not a registry's, so that `entries_of` refuses it.
    for key, entry in packages.items():
        address = entry.get("resolved")
        if isinstance(address, str) and not address.startswith(("http:", "https:")):
            kept[key]["resolved"] = address
    return json.dumps({**table, "packages": kept}, indent=2, ensure_ascii=False) + "\n"


def entries_of(lock: str) -> Iterator[LockEntry]:
    for key, value in as_table(as_table(json.loads(lock)).get("packages")).items():
        if not key:
            continue
        entry = as_table(value)
        name = key.rpartition(f"{MODULES}/")[2]
        integrity = str(entry.get("integrity", ""))
        fault = ""
        if entry.get("link") or "resolved" in entry:
            fault = "comes from an address or a folder, not from the registry"
        elif entry.get("inBundle"):
            fault = "lies inside of another package"
        elif not integrity.startswith("sha512-"):
            fault = "has no strong hash at the registry"
        real = str(entry.get("name", name))
        # Widely used packages install others under an alias, to have two versions side by side.
        if real != name and real not in popular(KEY):
            fault = fault or f"is another package under a borrowed name: {ascii(real)[1:-1][:80]}"
        yield LockEntry(name if fault else real, str(entry.get("version", "")), integrity, _is_for_here(entry), fault)


def _is_for_here(entry: Mapping[str, object]) -> bool:
    machine = _ARCHITECTURES.get(platform.machine().lower(), platform.machine().lower())
    return _matches(entry.get("os"), sys.platform) and _matches(entry.get("cpu"), machine)


def _matches(allowed: object, ours: str) -> bool:
    """Apply npm's rule for a list of systems or processors: no `!name` matches, and one of the other names, if any."""
    names = [str(item) for item in cast("list[object]", allowed)] if isinstance(allowed, list) else []
    wanted = [name for name in names if not name.startswith("!")]
    return f"!{ours}" not in names and (not wanted or ours in wanted)


def _refused(entries: list[LockEntry], trusted: set[str], own: tuple[str, ...]) -> Iterator[PackageRefusal]:
    ours = {hyphenated(name) for name in own}
    for entry in entries:
        if entry.name not in trusted and (reason := suspicion(entry.name, KEY, ours)):
            yield PackageRefusal(name=entry.name, reason=reason)
        if entry.fault:
            yield PackageRefusal(name=entry.name, reason=f"{entry.name} {entry.fault}.")


def _looked_into(here: list[LockEntry], cache: Path, trusted: set[str]) -> Iterator[PackageRefusal]:
    for item in here:
        path = _tarball(cache, item.integrity)
        if path is None or not path.is_file():
            yield PackageRefusal(
                name=item.name, reason=f"{item.name} is not what the registry promised: the hashes differ."
            )
            continue
        for fault in faults_of(path, item.name, item.version, trusted=trusted):
            yield PackageRefusal(name=item.name, reason=f"{item.name} {fault}.")


def _tarball(cache: Path, integrity: str) -> Path | None:
    """Return the path in npm's cache for the content with this hash; None if the hash is malformed."""
    try:
        digest = base64.b64decode(integrity.split(maxsplit=1)[0].removeprefix("sha512-"), validate=True).hex()
    except (binascii.Error, ValueError):
        return None
    return cache / "_cacache" / "content-v2" / "sha512" / digest[:2] / digest[2:4] / digest[4:]


def _manifest(request: InstallRequest) -> str:
    """Build the package.json that npm sees: only names and versions, none of the scripts or settings."""
    wanted: dict[str, dict[str, str]] = {}
    for requirement in request.requirements:
        if requirement.installed and not requirement.text.startswith("workspace:"):
            wanted.setdefault(requirement.kind or "dependencies", {})[requirement.name] = requirement.text
    return json.dumps({"private": True, **wanted})


def _refusals(done: StageResult) -> list[PackageRefusal]:
    """Explain what npm could not fetch. Raises `PortError` if the cause is not a package."""
    text = done.output
    if _UNREACHABLE.search(text):
        raise PortError("the npm registry cannot be reached", remedy="check npm's settings: npm config list")
    code = _CODE.search(text)
    kind = code[1] if code else ""
    if kind == "EINTEGRITY":
        return [PackageRefusal(name="", reason="a package is not what the registry promised: the hashes differ.")]
    if found := _NO_VERSION.search(text) or _NOT_FOUND.search(text):
        return [PackageRefusal(name=found[1], reason=f"{found[1]} is not at the registry in a version that fits.")]
    if kind == "ERESOLVE":
        return [PackageRefusal(name="", reason="no versions of these packages fit together.")]
    if kind == "EALLOWREMOTE":
        why = "comes from an address, not from the registry, or brings other packages inside"
        return [PackageRefusal(name="", reason=f"a package that is brought along {why}.")]
    if kind.startswith("EALLOW") or "nonexistent/git" in text:
        found = _NOT_TAKEN.search(text)
        name = found[1] if found else ""
        why = "comes from an address or a folder, not from the registry"
        return [PackageRefusal(name=name, reason=f"{name or 'a package that is brought along'} {why}.")]
    lines = [line.removeprefix("npm error").strip() for line in text.splitlines() if line.startswith("npm error")]
    raise PortError(f"npm failed: {' '.join(lines[:3])[:300] or text.strip()[-200:]}")


def _npm(environ: Mapping[str, str]) -> list[str]:
    found = shutil.which("npm", path=environ.get("PATH", ""))
    if found is None:
        raise ConfigError("npm is needed to install packages but is not on PATH", remedy="install Node.js with npm")
    return [found]


def _node(environ: Mapping[str, str]) -> str:
    return shutil.which("node", path=environ.get("PATH", "")) or "node"
