"""How the settings determine the model that answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from redstart.app.settings import Models, Settings, list_public_values, load
from redstart.app.settings.models import ModelOptions, StepModels
from redstart.app.wire import connect, load_profile
from redstart.core.chat import Answer, Ask, Message, Role, Tier
from redstart.core.errors import ConfigError, ModelBusy, ModelRefused
from redstart.ports.model.gateway import Gateway
from redstart.ports.model.port import Profile
from support.server import Reply, Request, ScriptedServer, Wire

Configure = Callable[[str], None]


@pytest.fixture(autouse=True)
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Write the user's file, with the variables of the outside hidden."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(variable, raising=False)

    def write(text: str) -> None:
        (tmp_path / "redstart").mkdir(exist_ok=True)
        (tmp_path / "redstart" / "config.toml").write_text(text)

    return write


def ask(question: str = "patch", tier: Tier = Tier.strong, site: str = "1/patch/0") -> Ask:
    return Ask(question=question, tier=tier, messages=(Message(role=Role.user, text="?"),), site=site)


def collect_answers(models: Models, *asks: Ask) -> list[Answer]:
    async def ask_all() -> list[Answer]:
        model = connect(Settings(models=models))
        return [await model.ask(item) for item in asks]

    return asyncio.run(ask_all())


def test_all_model_settings_can_be_set_in_the_user_file(configure: Configure) -> None:
    configure(
        """
[models]
strong = "anthropic:claude-sonnet-5-5"
fast = "openai:qwen3-coder"
fallback = ["openai:gpt-5"]
steps = { remember = "fast", reflect = "strong" }
patience = 60

[models.options."openai:qwen3-coder"]
base_url = "http://user:secret@127.0.0.1:4000/v1"
key_variable = "PROXY_KEY"
at_once = 2

[models.profiles."openai:qwen3-coder"]
context = 65536
tools = true
rates = { input = 0.2, output = 0.8 }
"""
    )
    settings = load()
    models = settings.models
    assert models.roster.names == ["anthropic:claude-sonnet-5-5", "openai:qwen3-coder", "openai:gpt-5"]
    assert models.get_model_options("openai:qwen3-coder").at_once == 2
    model_profile = load_profile(settings, "plan")
    assert (model_profile.context, model_profile.tools, model_profile.shapes) == (65536, True, False)
    values = list_public_values(settings)
    assert values["models.steps.remember"] == "fast"
    assert "secret" not in str(values)
    assert values["models.profiles"]["openai:qwen3-coder"] == {
        "context": 65536,
        "tools": True,
        "rates": {"input": 0.2, "output": 0.8},
    }


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ('[models.steps]\napply = "fast"', "models.steps.apply"),
        ("[models.options.x]\ncolour = 1", "models.options"),
        ("[models.profiles.x]\ncontext = 0", "models.profiles"),
        ("[models]\ntries = 0", "models.tries"),
    ],
)
def test_invalid_setting_is_named(configure: Configure, text: str, pattern: str) -> None:
    configure(text)
    with pytest.raises(ConfigError, match=pattern):
        load()


def test_variable_can_set_the_model_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDSTART_MODELS__STEPS__PLAN", "strong")
    monkeypatch.setenv("REDSTART_MODELS__FALLBACK", '["ollama:b", "ollama:c"]')
    models = load().models
    assert (models.steps.plan, models.fallback) == ("strong", ("ollama:b", "ollama:c"))


def test_model_flag_replaces_all_configured_models(configure: Configure) -> None:
    configure('[models]\nstrong = "openai:a"\nfallback = ["openai:b"]\nsteps = { plan = "openai:c" }')
    assert load().models.roster.names == ["openai:a", "openai:c", "openai:b"]
    assert load("ollama:d").models.roster.names == ["ollama:d"]


@pytest.mark.parametrize("models", [{"fallback": ("groq:x",)}, {"steps": StepModels(plan="groq:x")}])
def test_missing_key_of_any_model_is_reported_before_the_first_call(models: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(Settings(models=Models.model_validate({"strong": "ollama:a", "fast": "ollama:a", **models})))
    assert caught.value.remedy == "set GROQ_API_KEY"


def test_each_question_reaches_its_model_with_its_own_address_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_KEY", "team")
    with (
        ScriptedServer(lambda request: f"from {request.model}") as first_server,
        ScriptedServer(lambda _: "by hand") as second_server,
    ):
        models = Models(
            strong="openai:big",
            fast="openai:small",
            steps=StepModels(remember="anthropic:third"),
            base_url=first_server.openai_url,
            options={
                "openai:small": ModelOptions(key_variable="TEAM_KEY", temperature=0.5, max_tokens=77),
                "anthropic:third": ModelOptions(base_url=second_server.anthropic_url),
            },
        )
        fast_ask = ask("plan", Tier.fast, "1/plan/0")
        stuck_ask = ask("plan", Tier.fast, "3/plan/0")
        answers = collect_answers(models, ask(), fast_ask, stuck_ask, ask("remember", Tier.fast))
        requests = first_server.requests
    assert [answer.model for answer in answers] == ["openai:big", "openai:small", "openai:big", "anthropic:third"]
    assert [answer.text for answer in answers] == ["from big", "from small", "from big", "by hand"]
    small = requests[1]
    assert small.headers["authorization"] == "Bearer team"
    assert (small.body["temperature"], small.max_tokens) == (0.5, 77)
    assert "authorization" not in requests[0].headers


def test_next_model_answers_when_the_first_fails() -> None:
    def reply(request: Request) -> Reply:
        return Reply("yes") if request.model == "spare" else Reply(status=503)

    with ScriptedServer(reply) as server:
        models = Models(
            strong="openai:big", fast="openai:big", fallback=("openai:spare",), base_url=server.openai_url, tries=1
        )
        (answer,) = collect_answers(models, ask())
    assert (answer.text, answer.model) == ("yes", "openai:spare")


@pytest.mark.parametrize(("status", "kind"), [(503, ModelBusy), (401, ModelRefused)])
def test_error_class_is_kept_when_every_model_fails(status: int, kind: type[Exception]) -> None:
    with ScriptedServer(lambda _: Reply(status=status)) as server:
        models = Models(strong="openai:big", fast="openai:big", base_url=server.openai_url, tries=1)
        with pytest.raises(kind):
            collect_answers(models, ask())


@pytest.mark.parametrize("wire", list(Wire))
def test_profile_decides_how_tools_are_offered(wire: Wire) -> None:
    name = f"{wire.value}:in-house"
    with ScriptedServer(lambda _: "done") as server:
        url = server.openai_url if wire is Wire.openai else server.anthropic_url
        models = Models(strong=name, fast=name, base_url=url, profiles={name: Profile(tools=False, looks=0)})
        assert load_profile(Settings(models=models)).looks == 0
        collect_answers(models, ask())
        assert server.requests[0].tools == ()


def test_configured_models_share_one_gateway() -> None:
    assert isinstance(connect(Settings(models=Models(strong="ollama:a", fast="ollama:a"))), Gateway)


@pytest.mark.slow
def test_command_model_answers_and_replay_replaces_all_models(tmp_path: Path) -> None:
    (answer,) = collect_answers(Models(strong="command:echo hello", fast="command:echo hello"), ask())
    assert answer.text.strip() == "hello"
    with pytest.raises(ConfigError, match="cannot be read"):
        connect(Settings(models=Models(strong=f"replay:{tmp_path / 'none.json'}", fast="x")))
