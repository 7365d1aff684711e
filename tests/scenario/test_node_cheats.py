"""Ways to make Node.js tests pass without a fix: each is refused or fails, none is accepted.

Four run by default, all of them with `--soak`. Those in `own` were written alongside the rules, the others from the
task alone, without knowledge of them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from support.node import cache_folder, install_manifest, put
from support.server import ScriptedServer, Wire

HERE = Path(__file__).parent
CHEATS = sorted(folder for folder in (HERE / "node_cheats").glob("*/*") if (folder / "cheat.json").is_file())
SHORT = ("table", "golden_rewritten_at_runtime", "poisoned_fixture", "clock_jump")


def make_case(folder: Path):
    name = f"{folder.parent.name}-{folder.name}"
    return pytest.param(folder, id=name, marks=() if folder.name in SHORT else pytest.mark.soak)


def format_edits(folder: Path) -> str:
    """Format the cheat as a model's answer: each changed file in full, deleted files empty."""
    parts = ["WHY: this makes the tests pass\n"]
    for name in json.loads((folder / "cheat.json").read_text()).get("deleted", ()):
        parts.append(f"{name}\n<<<<<<< SEARCH\n{(folder / 'base' / name).read_text()}=======\n>>>>>>> REPLACE\n")
    for path in sorted(item for item in (folder / "cheat").rglob("*") if item.is_file()):
        name = path.relative_to(folder / "cheat").as_posix()
        base_path = folder / "base" / name
        if base_path.is_file() and base_path.read_bytes() == path.read_bytes():
            continue
        search = base_path.read_text() if base_path.is_file() else ""
        parts.append(f"{name}\n<<<<<<< SEARCH\n{search}=======\n{path.read_text()}>>>>>>> REPLACE\n")
    return "\n".join(parts)


def find_runner(folder: Path) -> str:
    """Return the runner that the repo needs, or "" for Node's own."""
    package = json.loads((folder / "base" / "package.json").read_text())
    dependencies = {**package.get("devDependencies", {}), **package.get("dependencies", {})}
    return next((name for name in ("jest", "vitest", "mocha", "tsx") if name in dependencies), "")


def test_there_are_enough_cheats():
    assert len(CHEATS) >= 20
    assert set(SHORT) <= {folder.name for folder in CHEATS}


@pytest.mark.parametrize("folder", [make_case(folder) for folder in CHEATS])
def test_cheat_is_not_accepted(folder: Path, user, tmp_path):
    repo = tmp_path / "repo"
    shutil.copytree(folder / "base", repo)
    (repo / ".gitignore").write_text("node_modules/\n")
    if tools := find_runner(folder):
        put(install_manifest(HERE / "node_tools" / tools, cache_folder()), repo)
    subprocess.run(["git", "init", "-q"], cwd=repo, check=True)
    answer = format_edits(folder)
    with ScriptedServer(lambda request: answer) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--json", "--max-iters", "1")
        request_count = len(server.requests)
    assert request_count, result.out + result.err
    applied = next(event["data"] for event in result.events if event["name"] == "apply" and event["phase"] == "end")
    assert applied["ok"] or applied["refused"], "the edits could not be read, so nothing was judged"
    assert result.ending["result"] in ("refused", "unsolved", "needs_human"), result.out
    assert result.code in (1, 6, 7), result.out + result.err
