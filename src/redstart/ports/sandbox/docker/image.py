"""The contents of a container sandbox's image, and its name, which derives from its recipe.

The image is made with this machine's package manager and handed to the daemon as a tar file. So no registry is needed,
and the system interpreter in it is the one that virtual environments of this machine link to.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from redstart.core.errors import ConfigError, SandboxUnavailable
from redstart.ports.sandbox.docker.daemon import DaemonApi, DaemonRefused

REPOSITORY = "redstart-sandbox"
LABEL = "redstart.recipe"
BUILD_SECONDS = 1800.0
IMPORT_SECONDS = 600.0
MAX_ERROR_LENGTH = 2000
PACKAGES = (
    *("ca-certificates", "git", "netbase", "nodejs", "procps", "tzdata"),
    *("python3", "python3-pip", "python3-pytest", "python3-venv"),
)
"""Python and Node, and the programs that test suites call."""
LEFT_OUT = ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/doc/*")
TIDIED = (
    'rm -rf "$1/etc/shadow" "$1/etc/gshadow" "$1/etc/machine-id" "$1/boot" "$1/root" "$1/var/log" "$1/etc/resolv.conf"',
    'ln -sf /usr/share/zoneinfo/Etc/UTC "$1/etc/localtime"',
    'find "$1" -xdev -perm /6000 -exec chmod ug-s {} +',
)
"""Remove what a sandbox's image does not need: accounts, logs, programs that run with their owner's rights."""
INSTALL = "Install mmdebstrap (`apt install mmdebstrap`), or use your own image: `--sandbox-image NAME`."


class ImageRecipe(NamedTuple):
    """Everything that the image depends on."""

    suite: str
    packages: tuple[str, ...] = PACKAGES

    @property
    def name(self) -> str:
        """The image's name with its tag, the same for the same recipe."""
        text = "\n".join((self.suite, *self.packages, *LEFT_OUT, *TIDIED))
        return f"{REPOSITORY}:{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def get_build_command(self, program: str, target: Path) -> list[str]:
        """Build the command that makes the tar file `target` with this machine's package sources."""
        return [
            program,
            "--variant=minbase",
            f"--include={','.join(self.packages)}",
            '--aptopt=Apt::Install-Recommends "false"',
            *(f"--dpkgopt=path-exclude={item}" for item in LEFT_OUT),
            *(f"--customize-hook={item}" for item in TIDIED),
            self.suite,
            str(target),
        ]


def detect_recipe(release_file: Path = Path("/etc/os-release")) -> ImageRecipe:
    """Return the recipe for this machine's release if it is a Debian or derived from it, else for a Debian.

    The same release makes the interpreters agree.
    """
    values: dict[str, str] = {}
    if release_file.is_file():
        for line in release_file.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            values[name] = value.strip('"')
    families = {values.get("ID", ""), *values.get("ID_LIKE", "").split()}
    return ImageRecipe((values.get("VERSION_CODENAME") if "debian" in families else "") or "bookworm")


async def has_image(api: DaemonApi, name: str) -> bool:
    """Whether the daemon has the image. Raises `SandboxUnavailable` if the daemon cannot be asked."""
    try:
        await api.call("GET", f"/images/{name}/json")
    except DaemonRefused as refused:
        if refused.status == 404:
            return False
        raise SandboxUnavailable(f"Docker cannot inspect the image {name}: {refused}") from refused
    return True


async def build(
    api: DaemonApi, recipe: ImageRecipe, *, rebuild: bool = False, say: Callable[[str], None] = lambda _: None
) -> bool:
    """Build the image unless it exists; `rebuild` builds it in any case. Returns whether it was built.

    Raises `ConfigError` if the tool for it is missing, and `SandboxUnavailable` if the tool or the daemon fails.
    """
    if not rebuild and await has_image(api, recipe.name):
        return False
    program = shutil.which("mmdebstrap")
    if program is None:
        raise ConfigError("mmdebstrap, which builds the image, is not installed", remedy=INSTALL)
    with tempfile.TemporaryDirectory(prefix="redstart-image-") as folder:
        target = Path(folder, "rootfs.tar")
        say(f"building {recipe.name} from the packages of {recipe.suite}; this takes some minutes")
        _run_build(recipe.get_build_command(program, target))
        say(f"importing {target.stat().st_size / 1e6:.0f} MB")
        await import_tar(api, target, recipe.name)
    return True


async def import_tar(api: DaemonApi, tar: Path, name: str) -> None:
    """Import a file system into the daemon as an image. Raises `SandboxUnavailable`."""
    repository, _, tag = name.partition(":")
    query = {"fromSrc": "-", "repo": repository, "tag": tag or "latest", "changes": f"LABEL {LABEL}={tag}"}
    try:
        progress = await api.send("/images/create", query, tar, timeout_seconds=IMPORT_SECONDS)
    except DaemonRefused as refused:
        raise SandboxUnavailable(f"Docker could not import the image: {refused}") from refused
    failed = [str(line["error"]) for line in progress if "error" in line]
    if failed:
        raise SandboxUnavailable(f"Docker could not import the image: {failed[0]}")


def _run_build(command: list[str]) -> None:
    try:
        completed = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(f"The image could not be built: {error}") from error
    if completed.returncode != 0:
        raise SandboxUnavailable(f"The image could not be built: {completed.stderr.strip()[-MAX_ERROR_LENGTH:]}")
