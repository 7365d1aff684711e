"""The doctor reports on healthy and broken machines and changes nothing."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from redstart.app.doctor import checks, services
from redstart.app.doctor.checks import check_python, examine
from redstart.app.doctor.results import DoctorCheck, Examination, Health, build_examination
from redstart.cli.doctor import doctor as doctor_command
from redstart.cli.doctor import format_row
from redstart.ports.sandbox import bwrap
from redstart.ports.sandbox.bwrap import find_bubblewrap
from redstart.ports.sql.engine import Database
from redstart.ports.sql.schema import HEAD
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.testing.contracts.store import Clock
from redstart.testing.states import make_state
from support.server import Reply, ScriptedServer

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    """Return the data folder of a user with no key, settings file or data yet."""
    for name in list(os.environ):
        if name.startswith("REDSTART_") or name.endswith(("_API_KEY", "_BASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.delenv("NEO4J_URI", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def tried() -> None:
    """Mark a test that tries every sandbox of this machine."""


@pytest.fixture(autouse=True)
def untried(request, monkeypatch) -> None:
    """Skip the sandboxes in tests of something else: trying them takes seconds."""
    if not {"tried", "path"} & set(request.fixturenames):
        monkeypatch.setattr(checks, "_check_sandboxes", lambda settings, platform: iter(()))


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Make an empty folder the whole PATH and the place of the sandbox program."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/none.sock")
    monkeypatch.setattr(bwrap, "PROGRAM", str(folder / "bwrap"))
    find_bubblewrap.cache_clear()
    yield folder
    find_bubblewrap.cache_clear()


def write_script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def run_check(name: str, project: Path | None = None) -> DoctorCheck:
    [check] = [item for item in examine(project=project).checks if item.name == name]
    assert check.health is Health.ok or check.name == "keys" or check.remedy, "a check that is not ok has a remedy"
    return check


def fill(home: Path) -> None:
    with Database.open(home / "redstart.db") as database:
        new = make_state(run_id="run-1")
        asyncio.run(SqlStore(database, Clock()).create(new, folder="/x", created=datetime.fromtimestamp(0, UTC)))
    DirectoryBlobs(home / "blobs").put(b"x" * 300_000)


def hash_tree(folder: Path) -> dict[str, tuple[str, int]]:
    """Map every path below the folder to its hash and modification time."""
    paths = [folder, *folder.rglob("*")] if folder.exists() else []
    return {
        str(path): (hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "", path.stat().st_mtime_ns)
        for path in paths
    }


def test_healthy_machine_is_ready(home, tried, monkeypatch):
    fill(home)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    examination = examine()
    assert (examination.ok, examination.summary) == (True, "ready")
    health = {check.name: check.health for check in examination.checks}
    assert "sandbox" in health
    details = {check.name: check.detail for check in examination.checks}
    assert set(health.values()) <= {Health.ok, Health.absent}
    assert details["database"] == f"revision {HEAD}"
    assert "blobs 0.3 MB" in details["size"]
    assert str(home) in details["folder"]


@pytest.mark.parametrize("state_of_home", ["none", "closed", "in use", "crashed"])
def test_doctor_changes_nothing(home, tmp_path, monkeypatch, state_of_home):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert examine_without_changes(home, tmp_path, monkeypatch, state_of_home).ok


def test_sandbox_check_changes_nothing(home, tmp_path, monkeypatch, tried):
    examination = examine_without_changes(home, tmp_path, monkeypatch, "in use")
    assert [check.health for check in examination.checks if check.name == "sandbox"] == [Health.ok]


def examine_without_changes(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home_state: str
) -> Examination:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    database = None
    if home_state != "none":
        fill(home)
    if home_state in ("in use", "crashed"):
        database = Database.open(home / "redstart.db")
        store = SqlStore(database, Clock())
        asyncio.run(store.create(make_state(run_id="run-2"), folder="/x", created=datetime.fromtimestamp(0, UTC)))
    if home_state == "crashed":
        copy = tmp_path / "copy"
        shutil.copytree(home, copy)
        (copy / "redstart.db-shm").unlink()
        monkeypatch.setenv("REDSTART_HOME", str(copy))
    before = hash_tree(tmp_path)
    examination = examine()
    after = hash_tree(tmp_path)
    if database:
        database.close()
    ignored = {str(scratch)}  # folders that come and go change its modification time
    assert {k: v for k, v in after.items() if k not in ignored} == {k: v for k, v in before.items() if k not in ignored}
    assert home.exists() is (home_state != "none")
    return examination


def test_missing_programs_are_reported(path):
    examination = examine()
    assert not examination.ok
    assert (run_check("git").health, run_check("git").detail) == (Health.fail, "not found")
    assert run_check("sandbox").health is Health.fail
    assert "install" in run_check("sandbox").remedy.lower()
    for name in ("ripgrep", "node"):
        assert run_check(name).health is Health.absent, "it is optional"
        assert "optional" in run_check(name).remedy
    assert "git not found" in examination.summary


@pytest.mark.parametrize(
    ("says", "health"),
    [
        ("echo git version 2.29.9", Health.fail),
        ("echo git version 2.30.0", Health.ok),
        ("echo git version 3.1", Health.ok),
        ("echo what", Health.fail),
        ("exit 1", Health.fail),
        (r"printf '\377\376'", Health.fail),
    ],
)
def test_git_version_is_checked(path, says, health):
    write_script(path / "git", says)
    assert run_check("git").health is health


def test_sandbox_without_namespaces_fails_with_a_hint(path):
    error_text = "bwrap: setting up uid map: Permission denied"
    write_script(
        path / "bwrap", f'[ "$1" = --version ] && echo bubblewrap 0.8.0 && exit\necho {error_text} >&2; exit 1'
    )
    check = run_check("sandbox")
    assert check.health is Health.fail
    assert error_text in check.detail
    assert check.remedy in (bwrap.APPARMOR, bwrap.NAMESPACES)


def test_old_python_fails():
    assert check_python((3, 10, 9)).health is Health.fail
    assert check_python((3, 11, 0)).health is Health.ok


def test_low_disk_space_is_a_warning(monkeypatch):
    monkeypatch.setattr(services, "LITTLE_DISK", 1 << 70)
    assert run_check("disk").health is Health.warn
    assert "runs prune" in run_check("disk").remedy


def test_home_that_is_a_file_fails(home):
    home.write_text("")
    assert run_check("folder").health is Health.fail


def test_invalid_database_file_fails(home):
    home.mkdir()
    (home / "redstart.db").write_bytes(b"this is not a database at all" * 100)
    assert run_check("database").health is Health.fail


def test_database_of_a_newer_redstart_fails(home):
    fill(home)
    connection = sqlite3.connect(home / "redstart.db")
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    check = run_check("database")
    assert check.health is Health.fail
    assert "9999" in check.detail


def test_database_in_use_is_read_with_its_recent_writes(home):
    with Database.open(home / "redstart.db"):
        assert (home / "redstart.db-wal").stat().st_size > 0, "recent writes are not in the database file yet"
        assert run_check("database").detail == f"revision {HEAD}"


def test_empty_home_has_no_database_yet(home):
    home.mkdir()
    assert run_check("database").health is Health.ok
    assert list(home.iterdir()) == []


def test_invalid_settings_fail_and_other_checks_still_run(monkeypatch):
    monkeypatch.setenv("REDSTART_LIMITS__DOLLARS", "1")
    assert run_check("settings").health is Health.fail
    assert "REDSTART_LIMITS__DOLLARS" in run_check("settings").detail
    assert run_check("git").health is Health.ok


def test_keys_are_named_but_never_shown(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("GROQ_API_KEY", "gq-secret")
    examination = examine()
    assert run_check("keys").detail == "OPENAI_API_KEY, GROQ_API_KEY"
    assert "secret" not in examination.model_dump_json()
    assert run_check("strong").health is Health.ok
    assert "openai:" in run_check("strong").detail


@pytest.mark.parametrize(("model", "row"), [("openai:gpt", "strong"), ("nobody:x", "model"), ("plain", "model")])
def test_model_without_key_or_provider_fails_without_a_request(monkeypatch, model, row):
    monkeypatch.setenv("REDSTART_MODELS__STRONG", model)
    assert run_check(row).health is Health.fail


def test_each_model_is_shown_with_its_host_and_origin(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://user:hunter2@llm.corp.example/v1")
    monkeypatch.setenv("REDSTART_MODELS__STRONG", "openai:one")
    monkeypatch.setenv("REDSTART_MODELS__FALLBACK", '["ollama:qwen3"]')
    assert "openai:one at llm.corp.example (set by OPENAI_BASE_URL)" in run_check("strong").detail
    assert "ollama:qwen3 at localhost:11434" in run_check("also").detail
    assert "hunter2" not in examine().model_dump_json()


def test_online_check_asks_each_model_once(monkeypatch):
    monkeypatch.setenv("REDSTART_MODELS__STRONG", "openai:one")
    monkeypatch.setenv("REDSTART_MODELS__FAST", "openai:two")
    with ScriptedServer(lambda request: "ok") as server:
        monkeypatch.setenv("REDSTART_MODELS__BASE_URL", server.openai_url)
        checks = {check.name: check for check in examine(online=True).checks}
        assert [(item.model, item.max_tokens) for item in server.requests] == [("one", 16), ("two", 16)]
        examine()
        assert len(server.requests) == 2, "without --online no model is called"
    assert checks["strong"].health is checks["fast"].health is Health.ok
    host = server.anthropic_url.removeprefix("http://")
    assert f"openai:one at {host} answered in" in checks["strong"].detail
    assert f"openai:two at {host} answered in" in checks["fast"].detail


def test_online_failure_of_a_model_does_not_hide_the_other(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("REDSTART_MODELS__STRONG", "openai:one")
    monkeypatch.setenv("REDSTART_MODELS__FAST", "openai:two")

    def reply(request):
        return (
            Reply(status=401, body=b'{"error": {"message": "bad key sk-secret"}}') if request.model == "one" else "ok"
        )

    with ScriptedServer(reply) as server:
        monkeypatch.setenv("REDSTART_MODELS__BASE_URL", server.openai_url)
        examination = examine(online=True)
    health = {check.name: check.health for check in examination.checks}
    assert (health["strong"], health["fast"]) == (Health.fail, Health.ok)
    assert "sk-secret" not in examination.model_dump_json()
    assert [check.remedy for check in examination.checks if check.name == "strong"] != [""]


def test_password_in_an_address_is_not_shown(monkeypatch):
    monkeypatch.setenv("REDSTART_MODELS__STRONG", "openai:one")
    monkeypatch.setenv("REDSTART_MODELS__BASE_URL", "ftp://user:hunter2@host/v1")
    assert run_check("strong").health is Health.fail
    assert "hunter2" not in examine().model_dump_json()


def run_doctor(*arguments: str):
    app = typer.Typer()
    app.command()(doctor_command)
    return CliRunner().invoke(app, list(arguments))


def test_command_exits_with_3_when_a_check_fails(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run_doctor()
    assert result.exit_code == 3
    assert result.output.splitlines()[0] == "machine"
    assert "  fail  git       not found" in result.output.splitlines()
    document = json.loads(run_doctor("--json").output)
    assert (document["v"], document["ok"]) == (1, False)
    assert {"group", "name", "health", "detail", "remedy"} == set(document["checks"][0])


def test_missing_model_makes_rows_and_last_line_say_not_ready(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run_doctor()
    assert result.exit_code == 3
    assert "  fail  model     not configured; `redstart demo` works without one" in result.output
    assert result.output.splitlines()[-1] == "not ready: model not configured"


def test_command_exits_with_0_when_nothing_fails(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    result = run_doctor()
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == "ready"


def test_row_wraps_between_words_under_its_own_column():
    check = DoctorCheck(
        group="machine",
        name="docker",
        health=Health.absent,
        detail="not available: " + "word " * 30,
        remedy="optional: " + "word " * 30 + "\n  a-command --with-a-flag",
    )
    lines = format_row(check, 80)
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("  -     docker    not available: word")
    assert lines[1].startswith(" " * 18 + "word")
    assert lines[-1] == "          a-command --with-a-flag"


def test_summary_names_each_failed_row():
    failed = [("git", "not found"), ("sandbox", "bwrap is missing; install it"), ("disk", "full (0 GB)")]
    checks = [DoctorCheck(group="g", name=name, health=Health.fail, detail=detail) for name, detail in failed]
    checks.append(DoctorCheck(group="g", name="x", health=Health.warn, detail="y"))
    summary = build_examination(tuple(checks)).summary
    assert summary == "not ready: git not found; sandbox bwrap is missing; disk full"


@pytest.mark.parametrize(
    ("files", "tests"),
    [
        ({"test_a.py": "def test_a(): ...\n\nasync def test_b():\n    pass\n"}, "pytest: 2 tests in 1 file "),
        ({"tests/test_a.py": "class TestA:\n    def test_a(self): ...\n"}, "pytest: 1 test in 1 file "),
        (
            {"test_u.py": "import unittest\n\nclass U(unittest.TestCase):\n    def test_u(self):\n        pass\n"},
            "unittest: 1 test in 1 file ",
        ),
        (
            {"package.json": '{"scripts": {"test": "node --test"}}', "a.test.js": "test('a', f)\nit('b', f)\n"},
            "node: 2 tests in 1 file ",
        ),
    ],
)
def test_project_is_inspected_but_not_run(tmp_path, files, tests):
    folder = tmp_path / "shop"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "conftest.py").write_text("raise SystemExit('it was run')\n") if "pytest" in tests else None
    assert run_check("tests", folder).detail.startswith(tests)
    assert run_check("runtime", folder).health in (Health.ok, Health.warn)


def test_directory_without_tests_is_no_failure_and_env_file_is_mentioned(tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    (folder / ".env").write_text("OPENAI_API_KEY=sk-secret\n")
    assert run_check("tests", folder).health is Health.absent
    assert (run_check(".env", folder).health, run_check(".env", folder).detail) == (Health.absent, "not loaded")
    assert "--env-file .env" in run_check(".env", folder).remedy


def test_configured_servers_are_contacted(monkeypatch):
    assert not {"temporal", "neo4j"} & {check.name for check in examine().checks}
    monkeypatch.setenv("REDSTART_FLEET__ADDRESS", "127.0.0.1:9")
    monkeypatch.setenv("NEO4J_URI", "bolt://127.0.0.1:9")
    temporal, neo4j = run_check("temporal"), run_check("neo4j")
    assert (temporal.health, temporal.detail) == (Health.fail, "does not answer at 127.0.0.1:9")
    assert (neo4j.health, "127.0.0.1:9" in neo4j.detail) == (Health.warn, True)


def test_database_server_is_checked_and_unreachable_server_fails(home, monkeypatch, new_postgres):
    monkeypatch.setenv("REDSTART_STORE__URL", new_postgres())
    assert run_check("database").detail.startswith("Postgres at ")
    assert run_check("database").detail.endswith(f"revision {HEAD}")
    monkeypatch.setenv("REDSTART_STORE__URL", "postgresql://user:hidden@127.0.0.1:9/none")
    check = run_check("database")
    assert check.health is Health.fail
    assert "hidden" not in f"{check.detail} {check.remedy}"
