"""Links in a workspace to the packages that were installed for the project."""

from __future__ import annotations

from pathlib import Path

from redstart.core.shell import Environment
from redstart.ports.sandbox.workspace import bring_copies


def test_link_is_created_without_replacing_files(tmp_path: Path) -> None:
    packages, workspace = tmp_path / "installed", tmp_path / "workspace"
    for folder in (packages, workspace):
        folder.mkdir()
    (workspace / "taken").write_text("of the snapshot")
    links = {name: str(packages) for name in ("node_modules", "taken", "../out", "..", "a/b")}
    bring_copies(Environment(mount=str(tmp_path / "none"), python="python3", links=links), workspace)
    assert (workspace / "node_modules").readlink() == packages
    assert (workspace / "taken").read_text() == "of the snapshot"
    assert {path.name for path in workspace.iterdir()} == {"node_modules", "taken"}
    assert {path.name for path in tmp_path.iterdir()} == {"installed", "workspace"}
