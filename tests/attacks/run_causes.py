"""Runs the programs of `causes/` in a sandbox as the current user and prints how each ended, as JSON.

This is a script, so that another user can start it. Arguments: the name of a tier, and how many programs run at once.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from redstart.core.shell import Completed, Environment, Execution, SandboxLimits
from redstart.ports.sandbox import bwrap, cgroups, stage
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.testing.sandbox import FolderWorkspaces

PROGRAMS = Path(__file__).with_name("causes")
MEGABYTE = 1 << 20
LIMITS = SandboxLimits(
    wall=90,
    cpu=2,
    memory=200 * MEGABYTE,
    file_size=10 * MEGABYTE,
    output=20_000,
    flood=5 * MEGABYTE,
    processes=40,
    disk=32 * MEGABYTE,
    inodes=2000,
)
TIERS = {"full": (), "ungrouped": ("tree",), "unstaged": ("stage",), "least": ("tree", "stage")}
"""The parts of the machine's abilities that each tier disables."""


def take_away(parts: tuple[str, ...]) -> None:
    if "tree" in parts:
        bwrap.find_own_tree = lambda: None
    if "stage" in parts:
        bwrap.get_own_rights = stage.ProcessRights


def parse_limits(program: str) -> SandboxLimits:
    lines = [line.removeprefix("# limits: ") for line in program.splitlines() if line.startswith("# limits: ")]
    pairs = dict(pair.split("=") for line in lines for pair in line.split())
    return LIMITS.model_copy(
        update={name: float(value) if name == "wall" else int(value) for name, value in pairs.items()}
    )


async def ended(box: Bubblewrap, workspaces: FolderWorkspaces, path: Path, semaphore: asyncio.Semaphore) -> Completed:
    program = path.read_text()
    interpreter = "/bin/sh" if path.suffix == ".sh" else sys.executable
    environment = Environment(mount="/repo", python=sys.executable, read_only=(sys.prefix, sys.base_prefix))
    execution = Execution(
        argv=(interpreter, path.name),
        snapshot=workspaces.create_snapshot(path.name, {path.name: program}),
        environment=environment,
        limits=parse_limits(program),
    )
    async with semaphore:
        return await box.run(execution)


async def main(tier: str, at_once: str) -> None:
    take_away(TIERS[tier])
    with tempfile.TemporaryDirectory(prefix="redstart-causes-") as folder:
        workspaces = FolderWorkspaces(Path(folder, "snapshots"))
        sandbox = Bubblewrap(workspaces, Path(folder, "scratch"))
        paths, semaphore = sorted(PROGRAMS.iterdir()), asyncio.Semaphore(int(at_once))
        results = await asyncio.gather(*(ended(sandbox, workspaces, path, semaphore) for path in paths))
        leftovers = [str(path) for path in Path(folder, "scratch").iterdir()]
    tree = cgroups.find_own_tree()
    folders = set(tree.folders.values()) if tree else set[Path]()
    leftovers += [str(item) for place in folders for item in place.glob(f"{cgroups.PREFIX}{cgroups.mark()}-*")]
    ends = {path.name: item.model_dump(mode="json") for path, item in zip(paths, results, strict=True)}
    print(json.dumps({"ends": ends, "left": leftovers}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
