"""What the image of a container sandbox holds, and its name, which is that of its recipe.

It is made with the package manager of this machine and handed to the daemon as a tar file, so that no registry is
needed, and so that the system's interpreter in it is the one that a virtual environment of this machine leads to.
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
LAST_WORDS = 2000
PACKAGES = (
    *("ca-certificates", "git", "netbase", "nodejs", "procps", "tzdata"),
    *("python3", "python3-pip", "python3-pytest", "python3-venv"),
)
"""Python and Node, and what test suites call."""
LEFT_OUT = ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/doc/*")
TIDIED = (
    'rm -rf "$1/etc/shadow" "$1/etc/gshadow" "$1/etc/machine-id" "$1/boot" "$1/root" "$1/var/log" "$1/etc/resolv.conf"',
    'ln -sf /usr/share/zoneinfo/Etc/UTC "$1/etc/localtime"',
    'find "$1" -xdev -perm /6000 -exec chmod ug-s {} +',
)
"""What an image of a sandbox does without: accounts, logs, programs that run with their owner's rights."""
INSTALL = "Install mmdebstrap (`apt install mmdebstrap`), or name an image of your own: `--sandbox-image NAME`."


class ImageRecipe(NamedTuple):
    """All that the image depends on."""

    suite: str
    packages: tuple[str, ...] = PACKAGES

    @property
    def name(self) -> str:
        """The image's name with its tag, the same for the same recipe."""
        text = "\n".join((self.suite, *self.packages, *LEFT_OUT, *TIDIED))
        return f"{REPOSITORY}:{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def command(self, program: str, target: Path) -> list[str]:
        """Makes the tar file `target`, with the package sources of this machine."""
        return [
            program,
            "--variant=minbase",
            f"--include={','.join(self.packages)}",
            '--aptopt=Apt::Install-Recommends "false"',
            *(f"--dpkgopt=path-exclude={each}" for each in LEFT_OUT),
            *(f"--customize-hook={each}" for each in TIDIED),
            self.suite,
            str(target),
        ]


def recipe_here(about: Path = Path("/etc/os-release")) -> ImageRecipe:
    """For the release of this machine where it is a Debian or its kin, so that interpreters agree; else a Debian."""
    values: dict[str, str] = {}
    if about.is_file():
        for line in about.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            values[name] = value.strip('"')
    kin = {values.get("ID", ""), *values.get("ID_LIKE", "").split()}
    return ImageRecipe((values.get("VERSION_CODENAME") if "debian" in kin else "") or "bookworm")


async def has_image(api: DaemonApi, name: str) -> bool:
    """Raises `SandboxUnavailable` where the daemon cannot be asked."""
    try:
        await api.call("GET", f"/images/{name}/json")
    except DaemonRefused as refused:
        if refused.status == 404:
            return False
        raise SandboxUnavailable(f"Docker cannot tell of the image {name}: {refused}") from refused
    return True


async def build(
    api: DaemonApi, recipe: ImageRecipe, *, anew: bool = False, say: Callable[[str], None] = lambda _: None
) -> bool:
    """Whether the image had to be made: one that is there is kept unless `anew`.

    Raises `ConfigError` where the tool for it is missing and `SandboxUnavailable` where it or the daemon fails.
    """
    if not anew and await has_image(api, recipe.name):
        return False
    program = shutil.which("mmdebstrap")
    if program is None:
        raise ConfigError("mmdebstrap, which makes the image, is not installed", remedy=INSTALL)
    with tempfile.TemporaryDirectory(prefix="redstart-image-") as folder:
        target = Path(folder, "rootfs.tar")
        say(f"making {recipe.name} from the packages of {recipe.suite}; this takes some minutes")
        _made(recipe.command(program, target))
        say(f"importing {target.stat().st_size / 1e6:.0f} MB")
        await import_tar(api, target, recipe.name)
    return True


async def import_tar(api: DaemonApi, tar: Path, name: str) -> None:
    """Gives the daemon a file system as an image. Raises `SandboxUnavailable`."""
    repository, _, tag = name.partition(":")
    query = {"fromSrc": "-", "repo": repository, "tag": tag or "latest", "changes": f"LABEL {LABEL}={tag}"}
    try:
        told = await api.send("/images/create", query, tar, within=IMPORT_SECONDS)
    except DaemonRefused as refused:
        raise SandboxUnavailable(f"Docker did not take the image: {refused}") from refused
    failed = [str(line["error"]) for line in told if "error" in line]
    if failed:
        raise SandboxUnavailable(f"Docker did not take the image: {failed[0]}")


def _made(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(f"The image could not be made: {error}") from error
    if done.returncode != 0:
        raise SandboxUnavailable(f"The image could not be made: {done.stderr.strip()[-LAST_WORDS:]}")
