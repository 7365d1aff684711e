"""The lines of a work tree that differ from an earlier state of its repo."""

from __future__ import annotations

import re
from pathlib import Path

from redstart.core.errors import ConfigError
from redstart.toolkit.base.git import GitFailed, git, split_z

_FILE = re.compile(r'^\+\+\+ (?:b/(?P<plain>.*?)\t?|"b/(?P<quoted>.*)")$')
_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def changed_lines(root: Path, ref: str) -> dict[str, tuple[int, ...]]:
    """By path from `root`: the lines that were added or altered since `ref`, uncommitted and untracked ones too.

    Raises `ConfigError` where there is no repo or no such ref. No hook and no program of the repo is run.
    """
    try:
        commit = git("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}", cwd=root).decode().strip()
        said = git("diff", "--unified=0", "--no-ext-diff", "--no-textconv", "--no-renames", "--relative", commit, "--",
                   cwd=root, ours=False)  # fmt: skip
        untracked = git("ls-files", "-z", "--others", "--exclude-standard", cwd=root, ours=False)
    except GitFailed as error:
        raise ConfigError(f"{ref} is no commit of this repo", remedy="name a branch, a tag or a commit") from error
    lines: dict[str, list[int]] = {}
    path = ""
    for line in said.decode(errors="replace").split("\n"):
        if found := _FILE.match(line):
            path = found["plain"] or (found["quoted"] or "").encode().decode("unicode_escape")
        elif path and (hunk := _HUNK.match(line)):
            first, count = int(hunk[1]), int(hunk[2]) if hunk[2] is not None else 1
            lines.setdefault(path, []).extend(range(first, first + count))
    for name in split_z(untracked):
        place = root / name
        if place.is_file() and not place.is_symlink():
            lines[name] = list(range(1, place.read_bytes().count(b"\n") + 2))
    return {path: tuple(numbers) for path, numbers in lines.items()}
