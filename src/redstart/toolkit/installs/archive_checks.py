"""Checks of every package archive, wheel or tarball, before any of it is written to disk."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

MOST_BYTES = 2 << 30
MOST_FILES = 100_000
MOST_RATIO = 400
"""Maximum ratio of unpacked to packed size."""
SMALL = 16 << 20
"""Unpacked bytes up to which the ratio is ignored."""

TOOLS = frozenset(
    [
        *("bash", "cargo", "cat", "cc", "chmod", "cp", "curl", "docker", "env", "find", "gcc", "git", "go", "grep"),
        *("java", "kill", "ls", "make", "mkdir", "mv", "node", "npm", "npx", "perl", "pip", "pip3", "pnpm", "python"),
        *("python3", "rm", "ruby", "sed", "sh", "ssh", "sudo", "tar", "uv", "wget", "which", "yarn"),
    ]
)
"""Names of programs that a package must not put on the path."""
OWNERS = {
    "eslint": ("eslint",),
    "jest": ("jest", "jest-cli"),
    "mocha": ("mocha",),
    "mypy": ("mypy",),
    "py.test": ("pytest",),
    "pytest": ("pytest",),
    "ruff": ("ruff",),
    "tsc": ("typescript",),
    "vitest": ("vitest",),
    "pip": ("pip",),
    "pip3": ("pip",),
    "npm": ("npm",),
    "npx": ("npm",),
    "uv": ("uv",),
    "yarn": ("yarn",),
    "pnpm": ("pnpm",),
}
"""Programs that only their own package may install."""


def is_outside(name: str) -> bool:
    """Return whether a name in an archive could lead out of the target folder."""
    return (
        not name
        or name.startswith("/")
        or "\\" in name
        or "\0" in name
        or ":" in name.split("/", maxsplit=1)[0]
        or ".." in PurePosixPath(name).parts
    )


def is_too_large(packed_size: int, sizes: Collection[int]) -> bool:
    total = sum(sizes)
    return len(sizes) > MOST_FILES or total > MOST_BYTES or (total > SMALL and total > packed_size * MOST_RATIO)


def find_reserved_programs(package: str, programs: Iterable[str]) -> list[str]:
    """Return the programs that only another package may install."""
    return sorted(
        {name for name in programs if (name in TOOLS or name in OWNERS) and package not in OWNERS.get(name, ())}
    )
