"""A third-party package with a model and a sandbox that Redstart does not know."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.user import Ran, User

CODE = '''"""A model that knows one fix, and a sandbox that counts."""

import json
from pathlib import Path

from redstart.core.chat import Answer, Usage
from redstart.ports.sandbox.bwrap import Bubblewrap

FIX = """WHY: one too many

calc.py
<<<<<<< SEARCH
    return 2 * number + 1
=======
    return 2 * number
>>>>>>> REPLACE
"""
CARD = {"summary": "a", "root_cause": "b", "fix": "c", "debug_steps": []}


class OneFix:
    def __init__(self, model, deadline):
        self.name = f"{model} within {deadline:.0f} s"

    async def ask(self, ask):
        text = FIX if ask.question == "patch" else json.dumps(CARD)
        return Answer(text=text, model=self.name, usage=Usage(input_tokens=1, output_tokens=1))


class Counting:
    tier = "anything"

    def __init__(self, workspaces, scratch):
        self.inner = Bubblewrap(workspaces, scratch)
        self.runs = Path(__file__).parent / "runs"

    async def run(self, execution):
        with self.runs.open("a") as file:
            file.write("run\\n")
        return await self.inner.run(execution)


class Leaking(Counting):
    async def run(self, execution):
        import subprocess

        from redstart.core.shell import Completed, ExitCause

        done = subprocess.run(execution.argv, capture_output=True, text=True)
        return Completed(exit_code=done.returncode, cause=ExitCause.ok, output=done.stdout, wall=0.1)


class Failing:
    async def ask(self, ask):
        raise KeyError("choices")


def failing(model, deadline):
    return Failing()


def mute(model, deadline):
    return object()


def refusing(workspaces, scratch):
    raise RuntimeError("no machine is free")
'''
ENTRIES = """[redstart.models]
onefix = acme_redstart:OneFix
openai = acme_redstart:OneFix
failing = acme_redstart:failing
mute = acme_redstart:mute
absent = acme_redstart_that_is_not_there:Model

[redstart.sandboxes]
counting = acme_redstart:Counting
leaking = acme_redstart:Leaking
refusing = acme_redstart:refusing
"""
MODEL = "plugin:onefix:small"


@pytest.fixture(scope="module")
def plugged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the package as pip would install it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "acme_redstart.py").write_text(CODE)
    dist_info = folder / "acme_redstart-1.2.dist-info"
    dist_info.mkdir()
    (dist_info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-redstart\nVersion: 1.2\n")
    (dist_info / "entry_points.txt").write_text(ENTRIES)
    return folder


@pytest.fixture
def user(plugged: Path, project: Path, tmp_path: Path) -> User:
    user = User(tmp_path, project)
    user.environ["PYTHONPATH"] = str(plugged)
    return user


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "calc.py").write_text("def double(number):\n    return 2 * number + 1\n")
    (repo / "test_calc.py").write_text("from calc import double\n\n\ndef test_double():\n    assert double(4) == 8\n")
    return repo


def assert_refused(ran: Ran, *expected_words: str) -> None:
    assert ran.code != 0
    assert "Traceback" not in ran.out + ran.err
    output = " ".join((ran.out + ran.err).split())
    assert [word for word in (*expected_words, "hint:") if word not in output] == [], output


def test_run_with_a_plugin_model_and_sandbox_ends_verified(user: User, repo: Path, plugged: Path) -> None:
    result = user.redstart("fix", repo, "-m", MODEL, "--sandbox", "plugin:counting", "--json")
    assert (result.code, result.ending["result"]) == (0, "verified"), result.err
    assert len((plugged / "runs").read_text().splitlines()) > 3
    list_result = user.redstart("runs", "list")
    assert MODEL in list_result.out


def test_run_with_plugins_can_be_resumed(user: User, repo: Path) -> None:
    first_result = user.redstart(
        "fix", repo, "-m", MODEL, "--sandbox", "plugin:counting", "--stop-after", "patch", "--json"
    )
    assert first_result.events[-1]["name"] == "patch", first_result.err
    resume_result = user.redstart("resume", "--json", cwd=repo)
    assert resume_result.ending["result"] == "verified", resume_result.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-m", "plugin:nobody:m"), ("no model plug-in is called 'nobody'", "absent, failing, mute")),
        (
            ("-m", "plugin:absent:m"),
            ("'absent' of acme-redstart 1.2 failed (ModuleNotFoundError", "reinstall"),
        ),
        (("-m", "plugin:mute:m"), ("returned an object of type object, which is not a model: it has no method `ask`",)),
        (("-m", "plugin:failing:m"), ("'failing' of acme-redstart 1.2 failed (KeyError: 'choices')",)),
        (("-m", MODEL, "--sandbox", "plugin:refusing"), ("failed (RuntimeError: no machine is free)",)),
        (("-m", MODEL, "--sandbox", "plugin:nothing"), ("no sandbox plug-in is called 'nothing'",)),
        (("-m", MODEL, "--sandbox", "plugin:leaking"), ("plugin:leaking does not hold",)),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else None,
)
def test_broken_plugin_is_an_error_with_a_hint(user: User, repo: Path, arguments: tuple[str, ...], words) -> None:
    assert_refused(user.redstart("fix", repo, *arguments), *words)


def test_plugin_does_not_replace_a_built_in(user: User, repo: Path) -> None:
    assert_refused(user.redstart("fix", repo, "-m", "openai:small"), "openai:small needs a key")
    assert user.redstart("fix", repo, "-m", "plugin:openai:small", "--json").ending["result"] == "verified"


def test_two_packages_with_the_same_plugin_name_are_refused(
    user: User, repo: Path, plugged: Path, tmp_path: Path
) -> None:
    both_path = tmp_path / "both"
    shutil.copytree(plugged, both_path)
    shutil.copytree(both_path / "acme_redstart-1.2.dist-info", both_path / "other-2.dist-info")
    (both_path / "other-2.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 2\n")
    user.environ["PYTHONPATH"] = str(both_path)
    assert_refused(
        user.redstart("fix", repo, "-m", MODEL), "several packages", "acme-redstart 1.2, other 2", "uninstall"
    )


def test_doctor_and_models_list_plugins(user: User) -> None:
    output = " ".join(user.redstart("doctor").out.split())
    for text in ("plugin:onefix of acme-redstart 1.2", "plugin:absent the plug-in", "plugin:counting isolation"):
        assert text in output, output
    assert "plugin:onefix:MODEL" in user.redstart("models").out
