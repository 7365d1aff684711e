"""The demo keeps its runs in a store of its own, replaced at each demo."""

from __future__ import annotations

from pathlib import Path

import pytest

from redstart.app import settings as configuration
from redstart.app.demo.store import replace_store, use_store
from redstart.core.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def leave(name: str) -> None:
    with replace_store() as folder:
        (folder / name).write_text("")


def test_each_demo_replaces_the_last(home):
    leave("first")
    leave("second")
    assert [path.name for path in home.iterdir()] == ["demo"]
    assert [path.name for path in (home / "demo").iterdir()] == ["second"]


def test_failed_demo_keeps_the_last(home):
    leave("first")
    with pytest.raises(FileNotFoundError), replace_store() as folder:
        (folder / "none" / "second").write_text("")
    assert [path.name for path in home.iterdir()] == ["demo"]
    assert [path.name for path in (home / "demo").iterdir()] == ["first"]


def test_demo_settings_override_the_users_store(home, monkeypatch):
    leave("first")
    environ = {"REDSTART_STORE__URL": "postgresql://db/runs", "REDSTART_TENANT": "shop"}
    use_store(environ, "show")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    settings = configuration.load()
    assert (settings.home, settings.store.url, settings.tenant) == (home / "demo", "", "home")


def test_missing_demo_gives_a_hint(home):
    with pytest.raises(ConfigError, match="no demo has run yet") as error_info:
        use_store({}, "show")
    assert error_info.value.remedy == "redstart demo"


def test_commands_that_start_a_run_reject_the_demo_store(home):
    leave("first")
    with pytest.raises(ConfigError, match="--demo does not work with `fix`"):
        use_store({}, "fix")
