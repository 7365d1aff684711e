"""Reachable models are listed by asking real servers on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from redstart.app import model_list
from redstart.app.model_list import ListedEndpoint, ModelList, offered_models
from redstart.app.settings import Models, Settings
from redstart.app.settings.models import ModelOptions
from redstart.cli.models import lines_of
from redstart.ports.model.endpoints import ENDPOINTS, ProviderEndpoint

SECRET = "sk-0123456789-secret"


class Lists(ThreadingHTTPServer):
    """Serves documents by path and records the path and headers of each request."""

    def __init__(self, documents: Mapping[str, object]) -> None:
        self.documents = documents
        self.asked: list[tuple[str, dict[str, str]]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Lists)
        path = self.path.partition("?")[0]
        server.asked.append((path, {name.lower(): value for name, value in self.headers.items()}))
        document = server.documents.get(path)
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(200 if path in server.documents else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving(documents: Mapping[str, object]) -> Iterator[Lists]:
    with Lists(documents) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def no_ollama_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = {**ENDPOINTS, "ollama": ProviderEndpoint("http://127.0.0.1:9/v1", "", "OLLAMA_HOST", "/v1")}
    monkeypatch.setattr("redstart.ports.model.endpoints.ENDPOINTS", closed)


def data(*names: str) -> dict[str, object]:
    return {"data": [{"id": name} for name in names]}


def only(listed: ModelList) -> ListedEndpoint:
    assert SECRET not in listed.model_dump_json()
    [endpoint] = listed.endpoints
    return endpoint


def settings_of(**models: object) -> Settings:
    return Settings(models=Models.model_validate(models))


def test_an_openai_endpoint_is_asked_with_its_key_and_listed_with_price_and_window():
    with serving({"/v1/models": data("gpt-5", "in-house", "text-embedding-3-small", "tts-1")}) as server:
        environ = {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": f"http://{server.host}/v1"}
        listed = offered_models(settings_of(strong="openai:gpt-5", fast="openai:gpt-5"), environ)
        [(path, headers)] = server.asked
    assert (path, headers["authorization"]) == ("/v1/models", f"Bearer {SECRET}")
    endpoint = only(listed)
    assert (endpoint.host, endpoint.origin, endpoint.key_variable) == (server.host, "OPENAI_BASE_URL", "OPENAI_API_KEY")
    known, unknown = endpoint.models
    assert (known.name, known.used, known.window, known.window_known) == ("openai:gpt-5", "strong", 400_000, True)
    assert known.input_usd == pytest.approx(1.25)
    assert known.output_usd == pytest.approx(10)
    assert (unknown.name, unknown.used, unknown.input_usd, unknown.window_known) == ("openai:in-house", "", None, False)
    assert (listed.uses, listed.host, listed.remedy) == ("openai:gpt-5", server.host, "")
    assert "OPENAI_API_KEY" not in listed.missing


def test_what_google_lists_is_named_as_it_is_asked():
    with serving({"/v1beta/openai/models": data("models/gemini-2.5-pro")}) as server:
        google = settings_of(options={"google:gemini-2.5-pro": {"base_url": f"http://{server.host}/v1beta/openai"}})
        endpoint = only(offered_models(google, {}))
    (offered,) = endpoint.models
    assert (offered.name, offered.listed, offered.input_usd is not None) == ("google:gemini-2.5-pro", True, True)


def test_anthropic_is_asked_in_its_own_way():
    with serving({"/v1/models": data("claude-sonnet-5-5")}) as server:
        environ = {"ANTHROPIC_API_KEY": SECRET, "ANTHROPIC_BASE_URL": f"http://{server.host}"}
        endpoint = only(offered_models(settings_of(), environ))
        [(_, headers)] = server.asked
    assert (headers["x-api-key"], "anthropic-version" in headers) == (SECRET, True)
    assert [model.name for model in endpoint.models] == ["anthropic:claude-sonnet-5-5"]


def test_ollama_lists_what_was_pulled_and_another_server_in_its_place_too():
    tags = {"models": [{"name": "qwen3:8b"}, {"name": "llama4:latest"}]}
    with serving({"/api/tags": tags}) as server:
        endpoint = only(offered_models(settings_of(), {"OLLAMA_HOST": server.host}))
        assert "authorization" not in server.asked[0][1]
    assert [(model.name, model.input_usd) for model in endpoint.models] == [
        ("ollama:llama4", 0.0),
        ("ollama:qwen3:8b", 0.0),
    ]
    with serving({"/v1/models": data("any")}) as server:
        endpoint = only(offered_models(settings_of(), {"OLLAMA_HOST": server.host}))
        assert [path for path, _ in server.asked] == ["/api/tags", "/v1/models"]
    assert [model.name for model in endpoint.models] == ["ollama:any"]


def test_a_configured_model_that_its_endpoint_does_not_list_is_marked():
    with serving({"/v1/models": data("gpt-5")}) as server:
        url = f"http://{server.host}/v1"
        options = {"openai:typo": ModelOptions(base_url=url, key_variable="TEAM_KEY")}
        settings = settings_of(strong="openai:typo", fast="openai:typo", options=options)
        listed = offered_models(settings, {"TEAM_KEY": SECRET})
    endpoint = only(listed)
    assert endpoint.key_variable == "TEAM_KEY"
    assert [(model.name, model.listed) for model in endpoint.models] == [("openai:typo", False), ("openai:gpt-5", True)]
    assert any("openai:typo" in line and "not in its list" in line for line in lines_of(listed, 80, every=False))


@pytest.mark.parametrize("document", [{"models": 3}, [], b"<html>", b"{", {}])
def test_an_endpoint_that_gives_no_list_is_named_and_the_configured_model_stays(document):
    with serving({"/v1/models": document}) as server:
        environ = {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": f"http://{server.host}/v1"}
        endpoint = only(offered_models(settings_of(strong="openai:x", fast="openai:x"), environ))
    assert server.host in endpoint.problem
    assert [model.name for model in endpoint.models] == ["openai:x"]


def test_a_refusal_and_a_server_that_is_down_say_so():
    with serving({}) as server:
        environ = {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": f"http://{server.host}/v1"}
        endpoint = only(offered_models(settings_of(), environ))
    assert endpoint.problem == f"{server.host} refused to list its models with status 404"
    down = only(offered_models(settings_of(), {"OPENAI_BASE_URL": "http://u:p@127.0.0.1:9/v1"}))
    assert (down.host, down.problem.startswith("127.0.0.1:9 cannot be reached")) == ("127.0.0.1:9", True)


def test_a_server_that_does_not_answer_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(model_list, "is_loopback", lambda url: False)
    held = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)  # takes connections, and never serves them
    try:
        environ = {"OPENAI_BASE_URL": f"http://127.0.0.1:{held.server_address[1]}/v1"}
        endpoint = only(offered_models(settings_of(), environ, seconds=0.3))
    finally:
        held.server_close()
    assert "did not answer within 0.3 s" in endpoint.problem


def test_with_nothing_set_it_says_what_to_set():
    listed = offered_models(settings_of(), {})
    assert (listed.uses, listed.endpoints) == ("", ())
    text = "\n".join(lines_of(listed, 80, every=False))
    for part in ("not set  OPENAI_API_KEY", "export OPENAI_API_KEY=…", "ollama:", "manual", "command:", "replay:"):
        assert part in text


def test_many_models_are_cut_and_the_lines_stay_within_the_screen():
    names = [f"in-house-{number:02}" for number in range(40)]
    with serving({"/v1/models": data(*names)}) as server:
        listed = offered_models(settings_of(base_url=f"http://{server.host}/v1"), {})
    short, whole = (lines_of(listed, 80, every=every) for every in (False, True))
    assert any("… and 28 more: redstart models --all" in line for line in short)
    assert sum("openai:in-house" in line for line in whole) == 40
    assert max(map(len, short)) <= 80
    assert any(line.startswith("?") for line in short)
