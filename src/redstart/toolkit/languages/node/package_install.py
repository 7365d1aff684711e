"""Install Node.js packages: lock, fetch, inspect, then install offline without running any script."""

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
from redstart.toolkit.installs.approval import explain_suspicion
from redstart.toolkit.installs.manifest_tables import as_table
from redstart.toolkit.installs.names import get_popular_names, hyphenate
from redstart.toolkit.installs.stage import StageResult, compute_key, finish, lock_environment, run
from redstart.toolkit.languages.node.packages import KEY, LOCK_NAME, MODULES
from redstart.toolkit.languages.node.tarballs import find_tarball_faults

AT_ONCE = 50
"""How many packages one process fetches."""
_SAFE_OPTIONS = (
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
_PACKAGE_NOT_FOUND = re.compile(r"npm error 404\s+'?((?:@[^/@\s']+/)?[^@\s']+)@")
_NO_VERSION = re.compile(r"No matching version found for ((?:@[^/@\s]+/)?[^@\s]+)@")
_NOT_TAKEN = re.compile(r"Refusing to fetch \"((?:@[^/@\s]+/)?[^@\s\"]+)@")
_ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "i686": "ia32"}


class LockEntry(NamedTuple):
    """One package of a lock."""

    name: str
    version: str
    integrity: str
    is_for_this_machine: bool
    """Whether it is for this machine; npm skips other packages."""
    fault: str
    """Why it cannot come from the registry, as the end of a sentence that begins with its name."""


def prepare_node(request: InstallRequest, home: Path, environ: Mapping[str, str]) -> InstallResult:
    """Do the work of `Installer.prepare`; `home` contains the environments. Modules are in their `node_modules`."""
    npm = _find_npm(environ)
    trusted_names = {name.lower() for name in request.trusted}
    cache = home / "npm-cache"
    with tempfile.TemporaryDirectory(prefix="redstart-install-") as scratch:
        stage = Path(scratch)
        (stage / "package.json").write_text(_build_manifest(request), encoding="utf-8")
        base = [*npm, "--cache", str(cache), *_SAFE_OPTIONS]
        lock_result = run([*base, "install", "--package-lock-only"], stage, environ)
        if lock_result.code:
            return InstallResult(refused=tuple(_explain_refusals(lock_result)))
        lock = strip_lock((stage / LOCK_NAME).read_text(encoding="utf-8"))
        entries = list(parse_lock_entries(lock))
        refused = list(dict.fromkeys(_check_lock_entries(entries, trusted_names, request.own)))
        if refused:
            return InstallResult(refused=tuple(refused))
        platform_entries = [entry for entry in entries if entry.is_for_this_machine]
        for start in range(0, len(platform_entries), AT_ONCE):
            specs = dict.fromkeys(f"{item.name}@{item.version}" for item in platform_entries[start : start + AT_ONCE])
            fetch_result = run([*base, "cache", "add", *specs], stage, environ)
            if fetch_result.code:
                return InstallResult(refused=tuple(_explain_refusals(fetch_result)))
        refused = list(dict.fromkeys(_inspect_tarballs(platform_entries, cache, trusted_names)))
        if refused:
            return InstallResult(refused=tuple(refused))
        return _install_offline(base, stage, home, lock, platform_entries, environ)


def _install_offline(
    base: list[str], stage: Path, home: Path, lock: str, platform_entries: list[LockEntry], environ: Mapping[str, str]
) -> InstallResult:
    version = run([_find_node(environ), "--version"], stage, environ).output.strip()
    key = compute_key(lock, version, sys.platform, platform.machine())
    with lock_environment(home, key) as (folder, is_complete):
        if not is_complete:
            shutil.copyfile(stage / "package.json", folder / "package.json")
            (folder / LOCK_NAME).write_text(lock, encoding="utf-8")
            result = run([*base, "ci", "--offline"], folder, environ)
            if "code EUSAGE" in result.output:
                # If a registry lacks packages for other systems, npm rejects its own lock.
                result = run([*base, "install", "--offline", "--no-save"], folder, environ)
            if result.code:
                return InstallResult(refused=tuple(_explain_refusals(result)))
            (folder / MODULES).mkdir(exist_ok=True)
            if strangers := _find_uninspected_packages(folder, platform_entries):
                return InstallResult(refused=strangers)
            finish(folder)
    packages = tuple(Package(name=item.name, version=item.version, hash=item.integrity) for item in platform_entries)
    return InstallResult(key=key, folder=str(folder), lock=lock, packages=packages)


def _find_uninspected_packages(folder: Path, platform_entries: list[LockEntry]) -> tuple[PackageRefusal, ...]:
    """List packages that were installed without inspection; npm's own list says what is installed."""
    installed_lock = folder / MODULES / ".package-lock.json"
    inspected_hashes = {item.integrity for item in platform_entries}
    installed_entries = (
        parse_lock_entries(installed_lock.read_text(encoding="utf-8")) if installed_lock.is_file() else ()
    )
    return tuple(
        PackageRefusal(name=item.name, reason=f"{item.name} is not in the lock.")
        for item in installed_entries
        if item.integrity not in inspected_hashes
    )


def strip_lock(lock: str) -> str:
    """Remove the download addresses from a lock (the hashes identify the packages) and the directory's name, which
    npm uses as the project's."""
    table = {name: item for name, item in as_table(json.loads(lock)).items() if name not in ("name", "version")}
    packages = {key: as_table(entry) for key, entry in as_table(table.get("packages")).items()}
    stripped_packages = {
        key: {name: item for name, item in entry.items() if name != "resolved"} for key, entry in packages.items()
    }
    for name in ("name", "version"):
        stripped_packages.get("", {}).pop(name, None)
    # Keep an address that is not a registry's, so that `parse_lock_entries` refuses it.
    for key, entry in packages.items():
        address = entry.get("resolved")
        if isinstance(address, str) and not address.startswith(("http:", "https:")):
            stripped_packages[key]["resolved"] = address
    return json.dumps({**table, "packages": stripped_packages}, indent=2, ensure_ascii=False) + "\n"


def parse_lock_entries(lock: str) -> Iterator[LockEntry]:
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
        real_name = str(entry.get("name", name))
        # Widely used packages install others under an alias, to have two versions side by side.
        if real_name != name and real_name not in get_popular_names(KEY):
            fault = fault or f"is another package under a borrowed name: {ascii(real_name)[1:-1][:80]}"
        yield LockEntry(
            name if fault else real_name, str(entry.get("version", "")), integrity, _is_for_platform(entry), fault
        )


def _is_for_platform(entry: Mapping[str, object]) -> bool:
    machine = _ARCHITECTURES.get(platform.machine().lower(), platform.machine().lower())
    return _is_platform_allowed(entry.get("os"), sys.platform) and _is_platform_allowed(entry.get("cpu"), machine)


def _is_platform_allowed(allowed_names: object, current: str) -> bool:
    """Apply npm's rule for a list of systems or processors: no `!name` matches, and one of the other names, if any."""
    names = [str(item) for item in cast("list[object]", allowed_names)] if isinstance(allowed_names, list) else []
    included = [name for name in names if not name.startswith("!")]
    return f"!{current}" not in names and (not included or current in included)


def _check_lock_entries(
    entries: list[LockEntry], trusted_names: set[str], own_packages: tuple[str, ...]
) -> Iterator[PackageRefusal]:
    own_names = {hyphenate(name) for name in own_packages}
    for entry in entries:
        if entry.name not in trusted_names and (reason := explain_suspicion(entry.name, KEY, own_names)):
            yield PackageRefusal(name=entry.name, reason=reason)
        if entry.fault:
            yield PackageRefusal(name=entry.name, reason=f"{entry.name} {entry.fault}.")


def _inspect_tarballs(
    platform_entries: list[LockEntry], cache: Path, trusted_names: set[str]
) -> Iterator[PackageRefusal]:
    for item in platform_entries:
        path = _locate_tarball(cache, item.integrity)
        if path is None or not path.is_file():
            yield PackageRefusal(
                name=item.name, reason=f"{item.name} is not what the registry promised: the hashes differ."
            )
            continue
        for fault in find_tarball_faults(path, item.name, item.version, trusted_names=trusted_names):
            yield PackageRefusal(name=item.name, reason=f"{item.name} {fault}.")


def _locate_tarball(cache: Path, integrity: str) -> Path | None:
    """Return the path in npm's cache for the content with this hash; None if the hash is malformed."""
    try:
        digest = base64.b64decode(integrity.split(maxsplit=1)[0].removeprefix("sha512-"), validate=True).hex()
    except (binascii.Error, ValueError):
        return None
    return cache / "_cacache" / "content-v2" / "sha512" / digest[:2] / digest[2:4] / digest[4:]


def _build_manifest(request: InstallRequest) -> str:
    """Build the package.json that npm sees: only names and versions, none of the scripts or settings."""
    dependencies: dict[str, dict[str, str]] = {}
    for requirement in request.requirements:
        if requirement.installed and not requirement.text.startswith("workspace:"):
            dependencies.setdefault(requirement.kind or "dependencies", {})[requirement.name] = requirement.text
    return json.dumps({"private": True, **dependencies})


def _explain_refusals(result: StageResult) -> list[PackageRefusal]:
    """Explain what npm could not fetch. Raises `PortError` if the cause is not a package."""
    text = result.output
    if _UNREACHABLE.search(text):
        raise PortError("the npm registry cannot be reached", remedy="check npm's settings: npm config list")
    code = _CODE.search(text)
    kind = code[1] if code else ""
    if kind == "EINTEGRITY":
        return [PackageRefusal(name="", reason="a package is not what the registry promised: the hashes differ.")]
    if match := _NO_VERSION.search(text) or _PACKAGE_NOT_FOUND.search(text):
        return [PackageRefusal(name=match[1], reason=f"{match[1]} is not at the registry in a version that fits.")]
    if kind == "ERESOLVE":
        return [PackageRefusal(name="", reason="no versions of these packages fit together.")]
    if kind == "EALLOWREMOTE":
        reason = "comes from an address, not from the registry, or brings other packages inside"
        return [PackageRefusal(name="", reason=f"a package that is brought along {reason}.")]
    if kind.startswith("EALLOW") or "nonexistent/git" in text:
        match = _NOT_TAKEN.search(text)
        name = match[1] if match else ""
        reason = "comes from an address or a folder, not from the registry"
        return [PackageRefusal(name=name, reason=f"{name or 'a package that is brought along'} {reason}.")]
    lines = [line.removeprefix("npm error").strip() for line in text.splitlines() if line.startswith("npm error")]
    raise PortError(f"npm failed: {' '.join(lines[:3])[:300] or text.strip()[-200:]}")


def _find_npm(environ: Mapping[str, str]) -> list[str]:
    executable = shutil.which("npm", path=environ.get("PATH", ""))
    if executable is None:
        raise ConfigError("npm is needed to install packages but is not on PATH", remedy="install Node.js with npm")
    return [executable]


def _find_node(environ: Mapping[str, str]) -> str:
    return shutil.which("node", path=environ.get("PATH", "")) or "node"
