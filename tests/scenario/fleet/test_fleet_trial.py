"""`redstart fleet up`: a whole fleet on one machine, as a first-time user sees it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.scenarios import Scenario
from support.server import ScriptedServer, Wire

PAGER = Scenario.load(Path(__file__).parent.parent / "repos" / "pager")
SECONDS = 180


@pytest.mark.soak
def test_a_fleet_on_this_machine_drives_a_run_and_leaves_nothing_behind(user, repo_of, tmp_path):
    repo, folder = repo_of(PAGER.name), tmp_path / "trial"
    with ScriptedServer(PAGER.reply) as server:
        user.uses(server, Wire.openai)
        command = [sys.executable, "-m", "redstart.cli.main", "fleet", "up", "--workers", "2", "--folder", str(folder)]
        up = subprocess.Popen(command, env=user.environ, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert up.stdout is not None
        said: list[str] = []
        try:
            while not any("Ctrl-C ends it" in line for line in said):
                said.append(up.stdout.readline())
                assert said[-1], said
            variables = dict(re.findall(r"export (\w+)=(\S+)", (folder / "env.sh").read_text()))
            user.environ |= variables
            password = variables["REDSTART_STORE__URL"].partition("redstart:")[2].partition("@")[0]
            detached = user.redstart("fix", "--detach", repo)
            assert detached.code == 0, detached.out + detached.err
            found = re.search(r"run (\w+) is with the fleet", detached.out)
            assert found, detached.out
            watched = user.redstart("runs", "watch", found[1])
            status = user.redstart("fleet", "status")
        finally:
            up.send_signal(signal.SIGTERM)
            rest, _ = up.communicate(timeout=SECONDS)
    assert (watched.code, "GREEN" in watched.out) == (0, True), watched.out + watched.err
    assert "2 workers in pool think, 2 workers in pool act" in status.out, status.out + status.err
    assert up.returncode == 0, rest
    assert rest.count("worker stopped") == 2
    everything = "".join(said) + rest + detached.out + watched.out + status.out
    assert password
    assert password not in everything
    assert not _still_there(folder)


def _still_there(folder: Path) -> list[str]:
    """Return the command lines of processes that still use the trial's folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in words:
            found.append(words)
    return found


def test_who_runs_tests_is_refused_with_a_key(user):
    user.environ |= {"REDSTART_FLEET__ADDRESS": "127.0.0.1:9", "ANTHROPIC_API_KEY": "sk-secret"}
    refused = user.redstart("worker", "--pool", "act")
    assert (refused.code, "ANTHROPIC_API_KEY" in refused.err, "sk-secret" in refused.err) == (2, True, False)


def test_without_a_fleet_there_is_nobody_to_hand_a_run_to(user, repo_of):
    user.environ |= {"REDSTART_MODELS__STRONG": "ollama:none"}
    refused = user.redstart("fix", "--detach", repo_of(PAGER.name))
    assert (refused.code, "no fleet is configured" in refused.err) == (2, True), refused.err
    assert user.redstart("runs", "list").out.startswith("There are no runs yet")


def test_a_run_that_cannot_leave_this_machine_says_so(user, repo_of, fleet):
    fleet.join(user)
    user.environ |= {"REDSTART_MODELS__STRONG": "ollama:none", "REDSTART_FLEET__SAME_MACHINE": "false"}
    refused = user.redstart("fix", "--detach", repo_of(PAGER.name))
    assert refused.code == 2
    assert "cannot move to another machine" in refused.err
    assert "store.url" in refused.err
