"""`redstart demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options

if TYPE_CHECKING:
    from redstart.app.settings import Settings
    from redstart.app.wire import House
    from redstart.core.run import Limits, RunState
    from redstart.ports.world.port import World


def demo(
    cheat: Annotated[
        bool, typer.Option("--cheat", help="See a model that edits the test be refused (exit 6).")
    ] = False,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Watch a bug being fixed, with recorded answers: no key, no network. Git, sandbox, tests and memory are real."""
    import tempfile

    from redstart.app.demo import copy_repo
    from redstart.app.settings import Models, Settings
    from redstart.core.run import Limits
    from redstart.ports.world.system import NumberedWorld

    with tempfile.TemporaryDirectory(prefix="redstart-demo-") as folder:
        repo = Path(folder) / "grocer"
        copy_repo("grocer", repo)
        model = "recorded:demo-cheat" if cheat else "recorded:demo"
        settings = Settings(home=Path(folder) / "home", models=Models(strong=model, fast=model))
        stage = _Stage(settings, repo, NumberedWorld("demo"), json, verbose)
        if cheat:
            stage.say("A small shop with failing tests, and a recorded model that would rather change the tests.")
            raise typer.Exit(stage.play("cheat", Limits(iterations=2)))
        stage.say("A small shop with failing tests. The model's answers are recorded; the rest happens now.")
        code = stage.play("first", Limits())
        if code == 0:
            stage.take_patch()
            copy_repo("later", repo)
            stage.say("\nLater a colleague adds stock.py, with the same kind of bug in another place.")
            code = stage.play("second", Limits())
        if code == 0:
            stage.say("\nThe first run needed two attempts, the second one: it had the lesson.", "bold")
            stage.say("Your turn: redstart fix   (in a folder with failing tests)")
        raise typer.Exit(code)


class _Stage:
    """The demo's folder, its own fresh store, and the run that is on."""

    def __init__(self, settings: Settings, repo: Path, world: World, json: bool, verbose: bool) -> None:
        self._settings, self._repo, self._world = settings, repo, world
        self._json, self._verbose = json, verbose
        self._patch = repo.parent / "demo.patch"

    def say(self, text: str, style: str = "") -> None:
        from redstart.cli.display import display

        display(json=self._json, verbose=self._verbose).say(text, style)

    def play(self, name: str, limits: Limits) -> int:
        from redstart.app.demo import recording
        from redstart.app.runs import Asked, begin_fix
        from redstart.cli.session import How, drive_run
        from redstart.ports.model.replay import Replay

        async def begin(house: House) -> RunState:
            return await begin_fix(house, self._repo, Asked(limits, own_python=True, looks=0))

        # The code that runs here is ours: where no sandbox can be had, the demo alone may do without.
        how = How(self._json, self._verbose, unsafe=True, patch=self._patch, world=self._world, passing=True)
        return drive_run(self._settings, how._replace(model=Replay(recording(name))), begin)

    def take_patch(self) -> None:
        from redstart.toolkit.repo.git import git

        git("apply", str(self._patch), cwd=self._repo)
