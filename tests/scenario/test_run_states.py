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


def listed(user: User) -> list[dict[str, Any]]:
    return [json.loads(line) for line in user.redstart("runs", "list", "--json").out.splitlines()]


def status(user: User) -> str:
    (run,) = listed(user)
    return run["status"]


@contextmanager
def asking_by_hand(user: User, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Start `redstart` with these arguments and yield its process once it waits for an answer."""
    command = [sys.executable, "-m", "redstart.cli.main", *(str(each) for each in arguments)]
    with subprocess.Popen(
        command, env=user.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            assert any(INTO.search(line) for line in process.stderr)
            yield process
        finally:
            process.kill()


def test_a_run_keeps_its_model_when_it_is_interrupted_and_resumed(user, repo):
    with asking_by_hand(user, "fix", repo, "-m", "manual") as process:
        assert status(user) == "running"
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
    (run,) = listed(user)
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
        assert f"model: manual, as this run began; your settings name openai:scripted at {server.openai_url}" in out
        assert server.requests == [], "nothing went to the provider of the settings"
        changed = user.redstart("resume", run["run_id"], "-m", "openai:scripted")
        assert f"model: was manual, now openai:scripted at {server.openai_url} (--model)" in changed.out
        assert (changed.code, bool(server.requests)) == (0, True), changed.out + changed.err
    assert (listed(user)[0]["status"], listed(user)[0]["model"]) == ("finished", "openai:scripted")


def test_a_run_whose_model_cannot_be_had_any_more_asks_nobody_else(user, repo):
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
    assert status(user) == "paused"


def test_a_run_of_an_earlier_version_is_read_and_resumed_with_the_configured_model(user, repo):
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo, "--stop-after", "plan").code == 130
        with closing(sqlite3.connect(user.home / "redstart.db", isolation_level=None)) as database:
            old = "replace(replace(state, '\"attempts\":5', '\"iterations\":5'), '\"format\":\"1.0\",', '')"
            database.execute(f"update runs set options = '', stopped = '', stop_reason = '', state = {old}")
            (text,) = database.execute("select state from runs").fetchone()
            assert ('"iterations":5' in text, '"format"' in text) == (True, False)
        (run,) = listed(user)
        assert (run["status"], run["model"]) == ("paused", "")
        ended = user.redstart("resume", cwd=repo)
    assert ended.code == 0, ended.out + ended.err
    assert f"model: openai:scripted at {server.openai_url}, from your settings (this run stored none)" in ended.out


def test_a_key_that_is_refused_leaves_a_failed_run_with_the_reason(user, repo):
    with ScriptedServer(lambda request: Reply(status=401)) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo).code == 3
    (run,) = listed(user)
    assert (run["status"], "401" in run["reason"]) == ("failed", True), run
    assert "failed" in user.redstart("show", cwd=repo).out


def test_nothing_is_stored_before_model_and_folder_are_valid(user, repo):
    for arguments in (("fix", repo, "-m", "gpt-5"), ("fix", repo, "-m", "openai:x"), ("fix", repo / "nowhere")):
        refused = user.redstart(*arguments)
        assert refused.code == 2, refused.out + refused.err
    assert "nowhere does not exist" in refused.err
    assert listed(user) == []


def test_a_dry_run_needs_no_model_and_is_paused(user, repo):
    ran = user.redstart("fix", repo, "--dry-run")
    assert ran.code == 0, ran.out + ran.err
    assert status(user) == "paused"


def test_a_question_by_hand_is_ended_by_a_cancellation_and_nothing_resumes_it(user, repo):
    with asking_by_hand(user, "fix", repo, "-m", "manual") as process:
        (run,) = listed(user)
        cancelled = user.redstart("runs", "cancel", run["run_id"])
        assert (cancelled.code, cancelled.out.strip()) == (0, f"run {run['run_id']} is cancelled")
        assert process.wait(SECONDS) == 130
    assert status(user) == "cancelled"
    assert "every run in this folder was cancelled" in user.redstart("resume", cwd=repo).err
    shown = user.redstart("show", cwd=repo)
    assert (shown.code, shown.out.splitlines()[:1]) == (0, [f"run {run['run_id']}  fix  {repo.name}"]), shown.err
    refused = user.redstart("resume", run["run_id"])
    assert (refused.code, "--force" in refused.err) == (2, True)
    with asking_by_hand(user, "resume", run["run_id"], "--force"):
        assert status(user) == "running"


def test_a_dead_run_is_paused_and_is_cancelled_at_once(user, repo):
    with asking_by_hand(user, "fix", repo, "-m", "manual") as process:
        process.kill()
        process.wait(SECONDS)
    (run,) = listed(user)
    assert run["status"] == "paused"
    assert user.redstart("runs", "cancel", run["run_id"]).out.strip() == f"run {run['run_id']} is cancelled"
    assert status(user) == "cancelled"
    removed = user.redstart("runs", "prune", "--older-than", "0")
    assert "removed 1 run," in removed.out
    assert listed(user) == []


def test_the_list_has_a_header_and_fits_eighty_columns(user, repo):
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo, "--stop-after", "reproduce").code == 130
    user.environ["COLUMNS"] = "80"
    head, line = user.redstart("runs", "list").out.splitlines()
    assert head.split()[:7] == ["ID", "AGE", "MODE", "STATE", "RESULT", "MODEL", "COST"]
    assert " fix " in line
    assert " paused " in line
    assert max(len(head), len(line)) <= 80
