"""The settings select the embedder and its options."""

from __future__ import annotations

from pathlib import Path

import pytest

from redstart.app.doctor import checks
from redstart.app.doctor.checks import examine
from redstart.app.doctor.results import DoctorCheck, Health
from redstart.app.settings import Settings, load
from redstart.app.wire import create_embedder, open_app
from redstart.core.errors import ConfigError, ModelTimeout
from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.model.embedding import SIMILARITY_THRESHOLD
from support.server import Reply, ScriptedServer

NAME = "openai:text-embedding-3-small"


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide outside variables and keep the user's file in `tmp_path`."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "home"))
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "REDSTART_MEMORY__EMBEDDER", "REDSTART_MODELS__STRONG"):
        monkeypatch.delenv(variable, raising=False)


def load_configuration(tmp_path: Path, text: str) -> Settings:
    (tmp_path / "redstart").mkdir(exist_ok=True)
    (tmp_path / "redstart" / "config.toml").write_text(text)
    return load()


def test_default_embedder_is_the_built_in_one(tmp_path: Path) -> None:
    embedder = create_embedder(load())
    assert isinstance(embedder, HashingEmbedder)
    assert embedder.near == 0.5
    assert create_embedder(load_configuration(tmp_path, "memory.near = 0.25")).near == 0.25


@pytest.mark.slow
async def test_embedder_address_key_and_deadline_are_set_like_those_of_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROXY_KEY", "proxy-0123456789")
    replies = iter([Reply(), Reply(hang=True)])
    with ScriptedServer(lambda _: next(replies)) as server:
        settings = load_configuration(
            tmp_path,
            f"""
memory = {{ embedder = "{NAME}", dimensions = 256 }}
[models.options."{NAME}"]
base_url = "{server.openai_url}"
key_variable = "PROXY_KEY"
deadline = 3
""",
        )
        embedder = create_embedder(settings)
        assert (embedder.near, embedder.dimension) == (SIMILARITY_THRESHOLD, 256)
        await embedder.embed(["word proxy-0123456789"])
        with pytest.raises(ModelTimeout, match="within 3 s"):
            await embedder.embed(["word"])
        request = server.requests[0]
    assert request.headers["authorization"] == "Bearer proxy-0123456789"
    assert request.body["dimensions"] == 256
    assert request.texts == ("word «secret:proxy_key»",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "told"),
    [(NAME, "needs a key"), ("nobody:small", "unknown model"), ("anthropic:claude", "Anthropic has no")],
)
def test_unusable_embedder_is_reported_only_when_a_run_begins(
    monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    monkeypatch.setenv("REDSTART_MEMORY__EMBEDDER", name)
    if name.startswith("anthropic"):
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key-0123456789")
    with open_app(load("ollama:some-model")) as app:
        with pytest.raises(ConfigError, match=told) as caught:
            app.with_model()
        assert caught.value.remedy


@pytest.mark.parametrize("name", ["small", "openai:", ":small"])
def test_name_without_a_provider_is_rejected(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("REDSTART_MEMORY__EMBEDDER", name)
    with pytest.raises(ConfigError, match="provider:name"):
        load()


def find_embedder_check(*, online: bool) -> DoctorCheck:
    (row,) = [check for check in examine(online=online).checks if check.name == "embedder"]
    return row


@pytest.mark.soak
def test_doctor_asks_the_embedder_only_when_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    replies = iter([Reply(text="yes"), Reply(), Reply(text="yes"), Reply(status=404)])
    with ScriptedServer(lambda _: next(replies)) as server:
        monkeypatch.setenv("REDSTART_MODELS__BASE_URL", server.openai_url)
        monkeypatch.setenv("REDSTART_MODELS__STRONG", "openai:any")
        monkeypatch.setenv("REDSTART_MEMORY__EMBEDDER", NAME)
        monkeypatch.setattr(
            checks, "_check_sandboxes", lambda settings, platform: iter(())
        )  # trying them takes seconds
        assert "not asked" in find_embedder_check(online=False).detail
        assert find_embedder_check(online=True).detail == f"{NAME} answered with 256 numbers per embedding"
        assert find_embedder_check(online=True).health is Health.warn
