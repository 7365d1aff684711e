"""A company's proxy, an env file, and the errors before any model call."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import ScriptedServer, Wire
from support.user import User


@pytest.fixture
def user(tmp_path: Path) -> User:
    """Return a user whose projects use the environment of the tests."""
    return User(tmp_path, Path(sys.prefix))


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(lambda _: '{"claims": []}') as running:
        yield running


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "shop.py").write_text("def total(prices):\n    return sum(prices)\n")
    return folder


def list_sent_keys(server: ScriptedServer) -> set[str]:
    assert server.requests, "the model was not asked"
    return {request.headers["authorization"] for request in server.requests}


@pytest.mark.parametrize("wire", list(Wire))
def test_prompts_and_key_go_to_the_proxy(user, server, repo, wire):
    openai = wire is Wire.openai
    variable, key = ("OPENAI_BASE_URL", "OPENAI_API_KEY") if openai else ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")
    user.environ |= {variable: server.openai_url if openai else server.anthropic_url, key: "sk-company"}
    result = user.redstart("audit", repo, "-m", f"{wire.value}:scripted")
    assert result.code == 0, result.out + result.err
    assert list_sent_keys(server) == {"Bearer sk-company"}


def test_unreachable_server_is_named_by_its_host(user, repo):
    user.environ |= {"OPENAI_BASE_URL": "http://user:hunter2@127.0.0.1:9/v1", "REDSTART_MODELS__TRIES": "1"}
    result = user.redstart("audit", repo, "-m", "openai:gpt-5")
    assert "openai:gpt-5 at 127.0.0.1:9 cannot be reached" in result.out + result.err
    assert "hunter2" not in result.out + result.err


def test_env_file_provides_keys_but_no_settings(user, server, repo):
    user.environ |= {"OPENAI_BASE_URL": server.openai_url}
    file = repo.parent / "team.env"
    file.write_text(
        "# of the team\nexport OPENAI_API_KEY='sk-from-the-file'  # ours\nOPENAI_BASE_URL=http://127.0.0.1:9/v1\n"
        "REDSTART_LIMITS__DOLLARS=77\nREDSTART_MODELS__BASE_URL=http://127.0.0.1:9/v1\nDATABASE_URL=postgresql://x\n"
    )
    result = user.redstart("audit", repo, "-m", "openai:scripted", "--env-file", file)
    assert result.code == 0, result.out + result.err
    assert list_sent_keys(server) == {"Bearer sk-from-the-file"}
    assert f"{file}: read 1 API key (OPENAI_API_KEY) and nothing else" in result.err
    assert "sk-from-the-file" not in result.out + result.err


def test_custom_key_variable_is_read_from_the_env_file(user, server, repo):
    user.environ["REDSTART_MODELS__OPTIONS"] = (
        f'{{"openai:scripted": {{"base_url": "{server.openai_url}", "key_variable": "TEAM_KEY"}}}}'
    )
    (repo / ".env").write_text('TEAM_KEY="sk-team"\n')
    refused = user.redstart("audit", repo, "-m", "openai:scripted")
    assert (refused.code, server.requests) == (2, [])
    assert "takes its key from TEAM_KEY, which is not set" in refused.err
    assert refused.err.count("note: .env is not loaded; to read API keys from it, add --env-file .env") == 1
    result = user.redstart("audit", ".", "-m", "openai:scripted", "--env-file", ".env", cwd=repo)
    assert result.code == 0, result.out + result.err
    assert list_sent_keys(server) == {"Bearer sk-team"}
    assert "not loaded" not in result.err


@pytest.mark.parametrize("command", ["fix", "improve", "audit", "doctor", "models"])
def test_missing_env_file_is_refused(user, repo, command):
    result = user.redstart(command, "--env-file", "none.env", cwd=repo)
    assert result.code == 2
    assert "none.env is not a file" in result.err


@pytest.mark.parametrize("command", ["fix", "improve"])
def test_missing_directory_is_reported_before_a_missing_model(user, tmp_path, command):
    result = user.redstart(command, "nosuchdir", cwd=tmp_path)
    assert result.code == 2
    assert "nosuchdir does not exist" in result.err
    assert "no model" not in result.err


def test_model_without_a_provider_gets_a_suggestion_and_starts_no_run(user, repo):
    result = user.redstart("fix", repo, "-m", "gpt-5")
    assert result.code == 2
    assert "unknown model 'gpt-5'" in result.err
    assert "did you mean openai:gpt-5?" in result.err
    for form in ("provider:name", "manual", "command:", "replay:"):
        assert form in result.err
    assert not list(user.home.rglob("*.db"))
