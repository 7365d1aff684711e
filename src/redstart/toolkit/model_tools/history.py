"""Earlier events: the attempts of this run, and the commits of a file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from redstart.core.frozen import clip
from redstart.core.run import AttemptSummary
from redstart.core.shell import Environment
from redstart.toolkit.base.git import ask_git

COMMITS = 15


def describe_attempts(history: Sequence[AttemptSummary], diff: Callable[[str], str]) -> str:
    """Describe what each attempt changed, and how it ended."""
    lines: list[str] = []
    for entry in history:
        if entry.probe:
            lines.append(f"attempt {entry.number}: a probe, nothing was changed")
            continue
        failing = f", {entry.red} red" if entry.red is not None else ""
        lines.append(f"attempt {entry.number}{failing}: {entry.outcome or entry.reason}")
        if entry.diff:
            lines.append(clip(diff(entry.diff), 2000))
    return "\n".join(lines)


def list_commits(environment: Environment, path: str) -> str:
    """Return the last commits that changed a file: ID, day and first line.

    Empty if the project's history is not available.
    """
    objects = Path(environment.git_objects) if environment.git_objects else None
    if objects is None or not environment.git_head or not objects.is_dir():
        return ""
    with tempfile.TemporaryDirectory(prefix="redstart-log-") as folder:
        # A repo of ours over the project's objects: the project's own configuration has no effect.
        root = Path(folder)
        (root / "objects" / "info").mkdir(parents=True)
        (root / "refs").mkdir()
        (root / "HEAD").write_text("ref: refs/heads/none\n")
        (root / "objects" / "info" / "alternates").write_text(f"{objects}\n")
        if environment.git_shallow:
            (root / "shallow").write_text(environment.git_shallow)
        shape = ("log", f"--max-count={COMMITS}", "--format=%h %cs %s", environment.git_head, "--", path)
        output = ask_git(root, "--git-dir", str(root), "--literal-pathspecs", *shape)
    return clip((output or b"").decode(errors="replace").strip(), 4000)
