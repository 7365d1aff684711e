"""How the settings determine the model that answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from redstart.app.settings import Models, Settings, load, public_values
from redstart.app.settings.models import ModelOptions, StepModels
from redstart.app.wire import connect, profile
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


def answered(models: Models, *asks: Ask) -> list[Answer]:
    async def all_of_them() -> list[Answer]:
        model = connect(Settings(models=models))
        return [await model.ask(item) for item in asks]

    return asyncio.run(all_of_them())


def test_everything_about_models_can_be_set_in_the_users_file(configure: Configure) -> None:
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
    assert models.option("openai:qwen3-coder").at_once == 2
    known = profile(settings, "plan")
    assert (known.context, known.tools, known.shapes) == (65536, True, False)
    shown = public_values(settings)
    assert shown["models.steps.remember"] == "fast"
    assert "secret" not in str(shown)
    assert shown["models.profiles"]["openai:qwen3-coder"] == {
        "context": 65536,
        "tools": True,
        "rates": {"input": 0.2, "output": 0.8},
    }


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[models.steps]\napply = "fast"', "models.steps.apply"),
        ("[models.options.x]\ncolour = 1", "models.options"),
        ("[models.profiles.x]\ncontext = 0", "models.profiles"),
        ("[models]\ntries = 0", "models.tries"),
    ],
)
def test_what_cannot_be_set_is_named(configure: Configure, text: str, named: str) -> None:
    configure(text)
    with pytest.raises(ConfigError, match=named):
        load()


def test_a_step_can_be_given_its_model_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDSTART_MODELS__STEPS__PLAN", "strong")
    monkeypatch.setenv("REDSTART_MODELS__FALLBACK", '["ollama:b", "ollama:c"]')
    models = load().models
    assert (models.steps.plan, models.fallback) == ("strong", ("ollama:b", "ollama:c"))


def test_who_names_one_model_by_a_flag_asks_nobody_else(configure: Configure) -> None:
    configure('[models]\nstrong = "openai:a"\nfallback = ["openai:b"]\nsteps = { plan = "openai:c" }')
    assert load().models.roster.names == ["openai:a", "openai:c", "openai:b"]
    assert load("ollama:d").models.roster.names == ["ollama:d"]


@pytest.mark.parametrize("models", [{"fallback": ("groq:x",)}, {"steps": StepModels(plan="groq:x")}])
def test_a_missing_key_of_any_model_is_told_before_anything_is_asked(models: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(Settings(models=Models.model_validate({"strong": "ollama:a", "fast": "ollama:a", **models})))
    assert caught.value.remedy == "set GROQ_API_KEY"


def test_each_question_reaches_its_model_by_its_own_address_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_KEY", "team")
    with ScriptedServer(lambda request: f"from {request.model}") as one, ScriptedServer(lambda _: "by hand") as two:
        models = Models(
            strong="openai:big",
            fast="openai:small",
            steps=StepModels(remember="anthropic:third"),
            base_url=one.openai_url,
            options={
                "openai:small": ModelOptions(key_variable="TEAM_KEY", temperature=0.5, max_tokens=77),
                "anthropic:third": ModelOptions(base_url=two.anthropic_url),
            },
        )
        fast = ask("plan", Tier.fast, "1/plan/0")
        stuck = ask("plan", Tier.fast, "3/plan/0")
        answers = answered(models, ask(), fast, stuck, ask("remember", Tier.fast))
        requests = one.requests
    assert [answer.model for answer in answers] == ["openai:big", "openai:small", "openai:big", "anthropic:third"]
    assert [answer.text for answer in answers] == ["from big", "from small", "from big", "by hand"]
    small = requests[1]
    assert small.headers["authorization"] == "Bearer team"
    assert (small.body["temperature"], small.max_tokens) == (0.5, 77)
    assert "authorization" not in requests[0].headers


def test_the_next_model_answers_where_the_first_does_not() -> None:
    def reply(request: Request) -> Reply:
        return Reply("yes") if request.model == "spare" else Reply(status=503)

    with ScriptedServer(reply) as server:
        models = Models(
            strong="openai:big", fast="openai:big", fallback=("openai:spare",), base_url=server.openai_url, tries=1
        )
        (answer,) = answered(models, ask())
    assert (answer.text, answer.model) == ("yes", "openai:spare")


@pytest.mark.parametrize(("status", "kind"), [(503, ModelBusy), (401, ModelRefused)])
def test_where_nobody_answers_the_class_is_kept(status: int, kind: type[Exception]) -> None:
    with ScriptedServer(lambda _: Reply(status=status)) as server:
        models = Models(strong="openai:big", fast="openai:big", base_url=server.openai_url, tries=1)
        with pytest.raises(kind):
            answered(models, ask())


@pytest.mark.parametrize("wire", list(Wire))
def test_a_profile_says_how_tools_are_offered(wire: Wire) -> None:
    name = f"{wire.value}:in-house"
    with ScriptedServer(lambda _: "done") as server:
        url = server.openai_url if wire is Wire.openai else server.anthropic_url
        models = Models(strong=name, fast=name, base_url=url, profiles={name: Profile(tools=False, looks=0)})
        assert profile(Settings(models=models)).looks == 0
        answered(models, ask())
        assert server.requests[0].tools == ()


def test_the_settings_models_stand_behind_one_gateway() -> None:
    assert isinstance(connect(Settings(models=Models(strong="ollama:a", fast="ollama:a"))), Gateway)


@pytest.mark.slow
def test_a_program_can_be_asked_and_a_recording_stands_for_all(tmp_path: Path) -> None:
    (answer,) = answered(Models(strong="command:echo hello", fast="command:echo hello"), ask())
    assert answer.text.strip() == "hello"
    with pytest.raises(ConfigError, match="cannot be read"):
        connect(Settings(models=Models(strong=f"replay:{tmp_path / 'none.json'}", fast="x")))
