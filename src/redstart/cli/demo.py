"""`redstart demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options

if TYPE_CHECKING:
    from redstart.app.settings import Settings
    from redstart.app.wire import AppContext
    from redstart.core.run import Limits, RunState
    from redstart.ports.world.port import World


NO_SANDBOX = (
    "No sandbox works on this machine. The demo runs without one, because its code is part of Redstart and the model's "
    "answers are prerecorded. Your own runs do not start without a sandbox."
)


def demo(
    cheat: Annotated[
        bool, typer.Option("--cheat", help="Watch Redstart refuse a model that edits the tests (exit code 6).")
    ] = False,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Watch Redstart fix a bug, without an API key or network.

    The model's answers are prerecorded; Git, the sandbox, the tests and memory are real. The runs are kept until the
    next demo; explore them with `redstart --demo`.
    """
    import tempfile

    from redstart.app.demo import copy_repo
    from redstart.app.demo.store import replace_store
    from redstart.app.settings import Models, Settings
    from redstart.ports.world.system import NumberedWorld

    with replace_store() as home, tempfile.TemporaryDirectory(prefix="redstart-demo-") as folder:
        repo = Path(folder) / "grocer"
        copy_repo("grocer", repo)
        model = "recorded:demo-cheat" if cheat else "recorded:demo"
        settings = Settings(home=home, models=Models(strong=model, fast=model))
        stage = DemoStage(settings, repo, NumberedWorld("demo"), json, verbose)
        code = _show_cheat(stage) if cheat else _show_fixes(stage, repo)
    stage.print_next_steps(has_learned=not cheat)
    raise typer.Exit(code)


def _show_cheat(stage: DemoStage) -> int:
    from redstart.core.run import Limits

    stage.print_line(
        "A small shop has failing tests. The recorded model tries to change the tests instead of the code."
    )
    stage.warn_if_no_sandbox()
    return stage.play("cheat", Limits(attempts=2))


def _show_fixes(stage: DemoStage, repo: Path) -> int:
    """Run twice: the fix card of the first run saves the second one an attempt."""
    from redstart.app.demo import copy_repo
    from redstart.core.run import Limits

    stage.print_line(
        "A small shop has failing tests. The model's answers are prerecorded; everything else runs for real."
    )
    stage.warn_if_no_sandbox()
    code = stage.play("first", Limits())
    if code != 0:
        return code
    stage.take_patch()
    copy_repo("later", repo)
    stage.print_line("\nLater a colleague adds stock.py, with the same kind of bug in another place.")
    code = stage.play("second", Limits())
    if code == 0:
        stage.print_line(
            "\nThe first run needed two attempts. The second needed one: it recalled the first fix.", "bold"
        )
    return code


class DemoStage:
    """The demo's directory, its own store, and its runs."""

    def __init__(self, settings: Settings, repo: Path, world: World, json: bool, verbose: bool) -> None:
        self._settings, self._repo, self._world = settings, repo, world
        self._json, self._verbose = json, verbose
        self._patch = repo.parent / "demo.patch"
        self._run_ids: list[str] = []

    def print_line(self, text: str, style: str = "") -> None:
        from redstart.cli.display import display

        display(json=self._json, verbose=self._verbose).print_line(text, style)

    def warn_if_no_sandbox(self) -> None:
        from redstart.app.wire import open_app
        from redstart.core.errors import SandboxUnavailable

        with open_app(self._settings) as app:
            try:
                app.with_sandbox()
            except SandboxUnavailable:
                self.print_line(NO_SANDBOX)

    def print_next_steps(self, *, has_learned: bool) -> None:
        if not self._run_ids:
            return
        self.print_line("\nExplore the demo's runs:")
        self.print_line("  redstart --demo runs list")
        self.print_line(f"  redstart --demo show {self._run_ids[0]} --proof")
        if has_learned:
            self.print_line("  redstart --demo memory list")
        self.print_line("Your turn: redstart fix   (in a directory with failing tests)")

    def play(self, name: str, limits: Limits) -> int:
        from redstart.app.demo import load_recording
        from redstart.app.runs import RunRequest, create_fix_run
        from redstart.cli.session import DriveMode, drive_run
        from redstart.ports.model.replay import ReplayModel

        async def start_run(app: AppContext) -> RunState:
            state = await create_fix_run(app, self._repo, RunRequest(limits, own_python=True, max_tool_calls=0))
            self._run_ids.append(state.run_id)
            return state

        # The demo runs only our own code, so it alone may run without a sandbox if none works.
        drive_mode = DriveMode(
            self._json, self._verbose, unsafe=True, patch=self._patch, world=self._world, is_demo=True
        )
        return drive_run(self._settings, drive_mode._replace(model=ReplayModel(load_recording(name))), start_run)

    def take_patch(self) -> None:
        from redstart.toolkit.base.git import run_git

        run_git("apply", str(self._patch), cwd=self._repo)
