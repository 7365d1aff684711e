"""Links in a workspace to the packages that were installed for the project."""

from __future__ import annotations

from pathlib import Path

from redstart.core.shell import Environment
from redstart.ports.sandbox.prepare import bring_copies


def test_a_link_is_made_and_takes_nobodys_place(tmp_path: Path) -> None:
    installed, workspace = tmp_path / "installed", tmp_path / "workspace"
    for folder in (installed, workspace):
        folder.mkdir()
    (workspace / "taken").write_text("of the snapshot")
    links = {name: str(installed) for name in ("node_modules", "taken", "../out", "..", "a/b")}
    bring_copies(Environment(mount=str(tmp_path / "none"), python="python3", links=links), workspace)
    assert (workspace / "node_modules").readlink() == installed
    assert (workspace / "taken").read_text() == "of the snapshot"
    assert {path.name for path in workspace.iterdir()} == {"node_modules", "taken"}
    assert {path.name for path in tmp_path.iterdir()} == {"installed", "workspace"}
