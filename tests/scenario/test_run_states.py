"""The states of runs in `runs list`: interrupted, failed, cancelled; and what a resumed run keeps."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.scenarios import Scenario
from support.server import Reply, ScriptedServer, Wire
from support.user import SECONDS, User

HERE = Path(__file__).parent
SCENARIO = Scenario.load(HERE / "repos" / "pager")
INTO = re.compile(r"^ +(/.+\.answer\.md) *$", re.MULTILINE)


@pytest.fixture
def repo(repo_of) -> Path:
    return repo_of(SCENARIO.name)


def list_runs(user: User) -> list[dict[str, Any]]:
    return [json.loads(line) for line in user.redstart("runs", "list", "--json").out.splitlines()]


def read_status(user: User) -> str:
    (run,) = list_runs(user)
    return run["status"]


@contextmanager
def start_by_hand(user: User, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Start `redstart` with these arguments and yield its process once it waits for an answer."""
    command = [sys.executable, "-m", "redstart.cli.main", *(str(argument) for argument in arguments)]
    with subprocess.Popen(
        command, env=user.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            assert any(INTO.search(line) for line in process.stderr)
            yield process
        finally:
            process.kill()


def test_run_keeps_its_model_when_interrupted_and_resumed(user, repo):
    with start_by_hand(user, "fix", repo, "-m", "manual") as process:
        assert read_status(user) == "running"
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
    (run,) = list_runs(user)
    assert (run["status"], run["model"], run["reason"]) == ("paused", "manual", "interrupted")
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        command = [sys.executable, "-m", "redstart.cli.main", "resume", run["run_id"]]
        with subprocess.Popen(
            command, env=user.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            assert any(INTO.search(line) for line in process.stderr), "it asks the person again"
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=SECONDS)
        assert f"model: manual, as when the run began; your settings name openai:scripted at {server.openai_url}" in out
        assert server.requests == [], "nothing went to the provider of the settings"
        changed = user.redstart("resume", run["run_id"], "-m", "openai:scripted")
        assert f"model: was manual, now openai:scripted at {server.openai_url} (--model)" in changed.out
        assert (changed.code, bool(server.requests)) == (0, True), changed.out + changed.err
    assert (list_runs(user)[0]["status"], list_runs(user)[0]["model"]) == ("finished", "openai:scripted")


def test_run_with_unavailable_model_asks_no_other_model(user, repo):
    user.environ["OPENAI_API_KEY"] = "sk-canary-1"
    assert user.redstart("fix", repo, "-m", "openai:gpt-x", "--stop-after", "reproduce").code == 130
    del user.environ["OPENAI_API_KEY"]
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.anthropic)
        refused = user.redstart("resume", cwd=repo)
        assert (refused.code, server.requests) == (2, [])
    assert "uses openai:gpt-x, which is not available: openai:gpt-x needs a key" in refused.err
    assert "set OPENAI_API_KEY, or choose another model: redstart resume" in refused.err
    assert b"sk-canary-1" not in (user.home / "redstart.db").read_bytes()
    assert read_status(user) == "paused"


def test_run_of_earlier_version_resumes_with_configured_model(user, repo):
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo, "--stop-after", "plan").code == 130
        with closing(sqlite3.connect(user.home / "redstart.db", isolation_level=None)) as database:
            old = "replace(replace(state, '\"attempts\":5', '\"iterations\":5'), '\"format\":\"1.0\",', '')"
            database.execute(f"update runs set options = '', stopped = '', stop_reason = '', state = {old}")
            (text,) = database.execute("select state from runs").fetchone()
            assert ('"iterations":5' in text, '"format"' in text) == (True, False)
        (run,) = list_runs(user)
        assert (run["status"], run["model"]) == ("paused", "")
        resume_result = user.redstart("resume", cwd=repo)
    assert resume_result.code == 0, resume_result.out + resume_result.err
    assert (
        f"model: openai:scripted at {server.openai_url}, from your settings (this run stored none)" in resume_result.out
    )


def test_rejected_key_leaves_a_failed_run_with_the_reason(user, repo):
    with ScriptedServer(lambda request: Reply(status=401)) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo).code == 3
    (run,) = list_runs(user)
    assert (run["status"], "401" in run["reason"]) == ("failed", True), run
    assert "failed" in user.redstart("show", cwd=repo).out


def test_nothing_is_stored_until_model_and_directory_are_valid(user, repo):
    for arguments in (("fix", repo, "-m", "gpt-5"), ("fix", repo, "-m", "openai:x"), ("fix", repo / "nowhere")):
        refused = user.redstart(*arguments)
        assert refused.code == 2, refused.out + refused.err
    assert "nowhere does not exist" in refused.err
    assert list_runs(user) == []


def test_dry_run_needs_no_model_and_is_paused(user, repo):
    result = user.redstart("fix", repo, "--dry-run")
    assert result.code == 0, result.out + result.err
    assert read_status(user) == "paused"


def test_cancellation_ends_a_manual_question_and_resume_needs_force(user, repo):
    with start_by_hand(user, "fix", repo, "-m", "manual") as process:
        (run,) = list_runs(user)
        cancel_result = user.redstart("runs", "cancel", run["run_id"])
        assert (cancel_result.code, cancel_result.out.strip()) == (0, f"run {run['run_id']} is cancelled")
        assert process.wait(SECONDS) == 130
    assert read_status(user) == "cancelled"
    assert "every run in this folder was cancelled" in user.redstart("resume", cwd=repo).err
    show_result = user.redstart("show", cwd=repo)
    assert (show_result.code, show_result.out.splitlines()[:1]) == (0, [f"run {run['run_id']}  fix  {repo.name}"]), (
        show_result.err
    )
    refused = user.redstart("resume", run["run_id"])
    assert (refused.code, "--force" in refused.err) == (2, True)
    with start_by_hand(user, "resume", run["run_id"], "--force"):
        assert read_status(user) == "running"


def test_dead_run_is_paused_and_can_be_cancelled(user, repo):
    with start_by_hand(user, "fix", repo, "-m", "manual") as process:
        process.kill()
        process.wait(SECONDS)
    (run,) = list_runs(user)
    assert run["status"] == "paused"
    assert user.redstart("runs", "cancel", run["run_id"]).out.strip() == f"run {run['run_id']} is cancelled"
    assert read_status(user) == "cancelled"
    prune_result = user.redstart("runs", "prune", "--older-than", "0")
    assert "removed 1 run," in prune_result.out
    assert list_runs(user) == []


def test_run_list_has_a_header_and_fits_eighty_columns(user, repo):
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo, "--stop-after", "reproduce").code == 130
    user.environ["COLUMNS"] = "80"
    head, line = user.redstart("runs", "list").out.splitlines()
    assert head.split()[:7] == ["ID", "AGE", "MODE", "STATE", "RESULT", "MODEL", "COST"]
    assert " fix " in line
    assert " paused " in line
    assert max(len(head), len(line)) <= 80
