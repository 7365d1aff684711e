"""Which host gets a question, and with which key, seen from the host's side."""

from __future__ import annotations

import asyncio

import pytest

from redstart.app.model_routes import describe_models, find_model_host, find_model_route
from redstart.app.settings import Models, Settings
from redstart.app.settings.models import ModelOptions
from redstart.app.wire import connect, find_embedding_address
from redstart.app.worker import refuse_keys
from redstart.core.chat import Ask, Message, Role, Tier
from redstart.core.errors import ConfigError, ModelError
from redstart.ports.model.endpoints import ENDPOINTS
from support.server import Reply, Request, ScriptedServer

ASK = Ask(question="patch", tier=Tier.strong, messages=(Message(role=Role.user, text="?"),))
VARIABLES = [
    *(endpoint.variable for endpoint in ENDPOINTS.values()),
    *(endpoint.url_variable for endpoint in ENDPOINTS.values()),
]


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, "TEAM_KEY", "ANTHROPIC_AUTH_TOKEN"):
        if name:
            monkeypatch.delenv(name, raising=False)


def settings_for(name: str, **values: object) -> Settings:
    return Settings(models=Models.model_validate({"strong": name, "fast": name, "tries": 1, **values}))


def ask(settings: Settings) -> str:
    return asyncio.run(connect(settings).ask(ASK)).text


def received(server: ScriptedServer) -> Request:
    [request] = server.requests
    return request


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "variable", "path"),
    [
        ("openai:gpt-4o", "OPENAI_BASE_URL", "/v1"),
        ("anthropic:claude-sonnet-4-6", "ANTHROPIC_BASE_URL", ""),
        ("ollama:qwen3", "OLLAMA_HOST", ""),
        ("azure:our-deployment", "AZURE_OPENAI_ENDPOINT", ""),
    ],
)
def test_sdk_variable_is_honored(name, variable, path, monkeypatch):
    with ScriptedServer(lambda _: "from the proxy") as server:
        monkeypatch.setenv(variable, f"{server.anthropic_url}{path}")
        if key := ENDPOINTS[name.partition(":")[0]].variable:
            monkeypatch.setenv(key, "key-of-the-company")
        assert ask(settings_for(name)) == "from the proxy"
        request = received(server)
    assert request.model == name.partition(":")[2]
    assert request.headers.get("authorization") == ("Bearer key-of-the-company" if key else None)


def test_settings_override_the_variable_and_model_options_override_both(monkeypatch):
    with (
        ScriptedServer(lambda _: "variable") as variable,
        ScriptedServer(lambda _: "setting") as setting,
        ScriptedServer(lambda _: "option") as option,
    ):
        monkeypatch.setenv("OPENAI_BASE_URL", variable.openai_url)
        assert ask(settings_for("openai:x")) == "variable"
        assert ask(settings_for("openai:x", base_url=setting.openai_url)) == "setting"
        options = {"openai:x": ModelOptions(base_url=option.openai_url)}
        assert ask(settings_for("openai:x", base_url=setting.openai_url, options=options)) == "option"


def test_variable_of_a_provider_does_not_affect_another():
    for name, host in (("openrouter:a/b", "openrouter.ai"), ("anthropic:c", "api.anthropic.com")):
        assert find_model_host(settings_for(name), name, {"OPENAI_BASE_URL": "http://proxy.example/v1"}) == host


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("", "http://localhost:11434/v1"),
        ("  ", "http://localhost:11434/v1"),
        ("box", "http://box:11434/v1"),
        ("box:1234", "http://box:1234/v1"),
        (":1234", "http://127.0.0.1:1234/v1"),
        ("http://box", "http://box:80/v1"),
        ("https://box", "https://box:443/v1"),
        ("https://box:8443/ollama/", "https://box:8443/ollama/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
        ("[::1]:99", "http://[::1]:99/v1"),
        ("::1", "http://[::1]:11434/v1"),
        ("box:70000", "http://box:11434/v1"),
        ("'box:1234'", "http://box:1234/v1"),
        ("ollama.com", "https://ollama.com:443/v1"),
    ],
)
def test_every_form_of_the_ollama_variable_is_accepted(value, url):
    assert find_model_route(settings_for("ollama:x"), "ollama:x", {"OLLAMA_HOST": value}).url == url


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OLLAMA_HOST"])
@pytest.mark.parametrize("value", ["ftp://host/v1", "http://host name/v1", "http://[host/v1"])
def test_variable_without_an_address_is_named(variable, value):
    name = "openai:x" if variable.startswith("OPENAI") else "ollama:x"
    with pytest.raises(ConfigError, match=variable):
        find_model_route(settings_for(name), name, {variable: value})


@pytest.mark.parametrize("name", ["openai:x", "anthropic:x", "ollama:x"])
def test_endpoint_without_a_key_gets_no_key(name):
    with ScriptedServer(lambda _: "ok") as server:
        url = server.anthropic_url if name.startswith("anthropic") else server.openai_url
        assert ask(settings_for(name, base_url=url)) == "ok"
        headers = received(server).headers
    assert "authorization" not in headers
    assert "x-api-key" not in headers
    assert "not-sent" not in str(headers)


def test_password_in_the_address_is_sent_as_basic_auth(monkeypatch):
    with ScriptedServer(lambda _: "ok") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url.replace("//", "//user:word@"))
        assert ask(settings_for("openai:x")) == "ok"
        assert received(server).headers["authorization"].startswith("Basic ")


@pytest.mark.parametrize("value", [None, "", "  "])
def test_missing_named_key_is_rejected_before_any_request(value, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "another-key")
    if value is not None:
        monkeypatch.setenv("TEAM_KEY", value)
    with ScriptedServer(lambda _: "ok") as server:
        options = {"openai:x": ModelOptions(base_url=server.openai_url, key_variable="TEAM_KEY")}
        with pytest.raises(ConfigError) as caught:
            ask(settings_for("openai:x", options=options))
        assert server.requests == []
    assert "TEAM_KEY" in str(caught.value)
    assert "TEAM_KEY" in caught.value.remedy


@pytest.mark.parametrize("status", [401, 404, 500, 503])
def test_rejected_request_names_the_host(status, monkeypatch):
    with ScriptedServer(lambda _: Reply(status=status)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url.replace("//", "//user:hunter2@"))
        with pytest.raises(ModelError) as caught:
            ask(settings_for("openai:x"))
    host = server.openai_url.removeprefix("http://").removesuffix("/v1")
    assert f"openai:x at {host} refused the call with status {status}" in str(caught.value)
    assert "hunter2" not in str(caught.value) + caught.value.remedy


def test_failed_connection_and_timeout_name_the_host(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(ModelError, match=r"openai:x at 127\.0\.0\.1:9 cannot be reached"):
        ask(settings_for("openai:x"))
    with ScriptedServer(lambda _: Reply(hang=True)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        with pytest.raises(ModelError, match=r"openai:x at 127\.0\.0\.1:\d+ did not answer within 0.5 s"):
            ask(settings_for("openai:x", deadline=0.5))


def test_embedder_uses_the_address_of_the_variable(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://proxy.example/v1")
    settings = Settings.model_validate({"memory": {"embedder": "openai:text-embedding-3-small"}})
    address = find_embedding_address(settings)
    assert (address.url, address.is_official) == ("http://proxy.example/v1", False)


@pytest.mark.parametrize(
    ("models", "words"),
    [
        ({"strong": "openai:x"}, "model openai:x at api.openai.com"),
        ({"strong": "openai:x", "base_url": "http://u:p@proxy:8080/v1"}, "model openai:x at proxy:8080"),
        ({"strong": "openai:x", "fallback": ("groq:y",)}, "model openai:x at api.openai.com (also asks api.groq.com)"),
        ({"strong": "manual"}, "model manual"),
        ({"strong": "command:/opt/tools/ask -m x /data/y.json"}, "model command:ask -m x y.json"),
        ({}, "no model"),
    ],
)
def test_header_names_every_host(models, words):
    assert describe_models(Settings(models=Models.model_validate(models)), {}) == words


def test_worker_that_runs_tests_holds_no_password_in_a_variable():
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL"):
        refuse_keys(Settings(), {"OPENAI_BASE_URL": "https://user:word@proxy/v1"})
    refuse_keys(Settings(), {"OPENAI_BASE_URL": "https://proxy/v1"})
