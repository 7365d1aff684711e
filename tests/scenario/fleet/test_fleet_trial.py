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
def test_local_fleet_drives_a_run_and_leaves_nothing_behind(user, repo_of, tmp_path):
    repo, folder = repo_of(PAGER.name), tmp_path / "trial"
    with ScriptedServer(PAGER.reply) as server:
        user.uses(server, Wire.openai)
        command = [sys.executable, "-m", "redstart.cli.main", "fleet", "up", "--workers", "2", "--folder", str(folder)]
        process = subprocess.Popen(command, env=user.environ, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert process.stdout is not None
        lines: list[str] = []
        try:
            while not any("Ctrl-C ends it" in line for line in lines):
                lines.append(process.stdout.readline())
                assert lines[-1], lines
            variables = dict(re.findall(r"export (\w+)=(\S+)", (folder / "env.sh").read_text()))
            user.environ |= variables
            password = variables["REDSTART_STORE__URL"].partition("redstart:")[2].partition("@")[0]
            detach_result = user.redstart("fix", "--detach", repo)
            assert detach_result.code == 0, detach_result.out + detach_result.err
            match = re.search(r"run (\w+) is with the fleet", detach_result.out)
            assert match, detach_result.out
            watch_result = user.redstart("runs", "watch", match[1])
            status = user.redstart("fleet", "status")
        finally:
            process.send_signal(signal.SIGTERM)
            remaining_output, _ = process.communicate(timeout=SECONDS)
    assert (watch_result.code, "GREEN" in watch_result.out) == (0, True), watch_result.out + watch_result.err
    assert "2 workers in pool think, 2 workers in pool act" in status.out, status.out + status.err
    assert process.returncode == 0, remaining_output
    assert remaining_output.count("worker stopped") == 2
    full_output = "".join(lines) + remaining_output + detach_result.out + watch_result.out + status.out
    assert password
    assert password not in full_output
    assert not _list_remaining_processes(folder)


def _list_remaining_processes(folder: Path) -> list[str]:
    """Return the command lines of processes that still use the trial's folder."""
    command_lines = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command_line = place.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in command_line:
            command_lines.append(command_line)
    return command_lines


def test_act_worker_with_a_key_is_refused(user):
    user.environ |= {"REDSTART_FLEET__ADDRESS": "127.0.0.1:9", "ANTHROPIC_API_KEY": "sk-secret"}
    refused = user.redstart("worker", "--pool", "act")
    assert (refused.code, "ANTHROPIC_API_KEY" in refused.err, "sk-secret" in refused.err) == (2, True, False)


def test_detach_without_a_fleet_is_refused(user, repo_of):
    user.environ |= {"REDSTART_MODELS__STRONG": "ollama:none"}
    refused = user.redstart("fix", "--detach", repo_of(PAGER.name))
    assert (refused.code, "no fleet is configured" in refused.err) == (2, True), refused.err
    assert user.redstart("runs", "list").out.startswith("There are no runs yet")


def test_detaching_a_run_bound_to_this_machine_is_refused(user, repo_of, fleet):
    fleet.join(user)
    user.environ |= {"REDSTART_MODELS__STRONG": "ollama:none", "REDSTART_FLEET__SAME_MACHINE": "false"}
    refused = user.redstart("fix", "--detach", repo_of(PAGER.name))
    assert refused.code == 2
    assert "cannot move to another machine" in refused.err
    assert "store.url" in refused.err
