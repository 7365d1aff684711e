"""From a judgement to what is asked of the installer, and from what it made to where the tests run."""

from __future__ import annotations

from pathlib import Path

from redstart.core.shell import Environment
from redstart.ports.install.port import InstallRequest, Language, Prepared
from redstart.toolkit.installs import node, python
from redstart.toolkit.installs.judge import Judgement

LOCK_NAMES = {Language.python: python.LOCK_NAME, Language.node: node.LOCK_NAME}
"""What the lock is called in the project."""


def requests_of(judgement: Judgement, interpreter: str = "") -> tuple[InstallRequest, ...]:
    """What is to be installed, one request a language; none for a language of which nothing is asked.

    Only what is allowed is in it: a judgement that refuses, or still asks, is settled before.
    """
    made: list[InstallRequest] = []
    for language in Language:
        wanted = tuple(one for one in judgement.allowed if one.language is language and one.installed)
        if wanted:
            made.append(
                InstallRequest(
                    language=language,
                    requirements=wanted,
                    trusted=tuple(dict.fromkeys(one.name for one in wanted)),
                    own=judgement.own,
                    python=interpreter if language is Language.python else "",
                )
            )
    return tuple(made)


def with_packages(environment: Environment, prepared: Prepared) -> Environment:
    """The same environment with what was installed, read-only: its interpreter, or its modules of Node.js."""
    folder = Path(prepared.folder)
    shown = tuple(dict.fromkeys((*environment.read_only, prepared.folder)))
    if not prepared.python:
        modules = str(folder / node.MODULES)
        variables = _with_path(environment.variables, str(folder / node.MODULES / ".bin"), last=True)
        links = {**environment.links, node.MODULES: modules}
        return environment.model_copy(update={"read_only": shown, "variables": variables, "links": links})
    variables = {
        **_with_path(environment.variables, str(Path(prepared.python).parent)),
        "VIRTUAL_ENV": prepared.folder,
    }
    # Set where redstart's own interpreter stood in: here every plugin is one that the project asked for.
    variables.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)
    return environment.model_copy(
        update={
            "read_only": tuple(dict.fromkeys((*shown, *_base(folder)))),
            "python": prepared.python,
            "variables": variables,
            "chosen": "installed for this project",
        }
    )


def _base(folder: Path) -> tuple[str, ...]:
    """Where the interpreter lies that the environment was made with; every sandbox shows the system's own."""
    lines = (folder / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    found = next((line.partition("=")[2].strip() for line in lines if line.startswith("home")), "")
    prefix = str(Path(found).parent) if found else ""
    return () if prefix in ("", "/", "/usr") else (prefix,)


def _with_path(variables: dict[str, str], folder: str, *, last: bool = False) -> dict[str, str]:
    before = [one for one in variables.get("PATH", "").split(":") if one and one != folder]
    return {**variables, "PATH": ":".join([*before, folder] if last else [folder, *before])}
