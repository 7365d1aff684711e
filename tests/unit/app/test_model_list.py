"""Reachable models are listed by asking real servers on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from redstart.app import model_list
from redstart.app.model_list import ListedEndpoint, ModelList, list_offered_models
from redstart.app.settings import Models, Settings
from redstart.app.settings.models import ModelOptions
from redstart.cli.models import format_model_list
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
def serve_lists(documents: Mapping[str, object]) -> Iterator[Lists]:
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
    endpoints = {**ENDPOINTS, "ollama": ProviderEndpoint("http://127.0.0.1:9/v1", "", "OLLAMA_HOST", "/v1")}
    monkeypatch.setattr("redstart.ports.model.endpoints.ENDPOINTS", endpoints)


def build_list(*names: str) -> dict[str, object]:
    return {"data": [{"id": name} for name in names]}


def get_only_endpoint(listing: ModelList) -> ListedEndpoint:
    assert SECRET not in listing.model_dump_json()
    [endpoint] = listing.endpoints
    return endpoint


def make_settings(**models: object) -> Settings:
    return Settings(models=Models.model_validate(models))


def test_openai_endpoint_gets_its_key_and_lists_prices_and_windows():
    with serve_lists({"/v1/models": build_list("gpt-5", "in-house", "text-embedding-3-small", "tts-1")}) as server:
        environ = {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": f"http://{server.host}/v1"}
        listing = list_offered_models(make_settings(strong="openai:gpt-5", fast="openai:gpt-5"), environ)
        [(path, headers)] = server.asked
    assert (path, headers["authorization"]) == ("/v1/models", f"Bearer {SECRET}")
    endpoint = get_only_endpoint(listing)
    assert (endpoint.host, endpoint.origin, endpoint.key_variable) == (server.host, "OPENAI_BASE_URL", "OPENAI_API_KEY")
    priced_model, unpriced_model = endpoint.models
    assert (priced_model.name, priced_model.used, priced_model.window, priced_model.window_known) == (
        "openai:gpt-5",
        "strong",
        400_000,
        True,
    )
    assert priced_model.input_usd == pytest.approx(1.25)
    assert priced_model.output_usd == pytest.approx(10)
    assert (unpriced_model.name, unpriced_model.used, unpriced_model.input_usd, unpriced_model.window_known) == (
        "openai:in-house",
        "",
        None,
        False,
    )
    assert (listing.uses, listing.host, listing.remedy) == ("openai:gpt-5", server.host, "")
    assert "OPENAI_API_KEY" not in listing.missing


def test_google_model_names_match_the_names_used_in_requests():
    with serve_lists({"/v1beta/openai/models": build_list("models/gemini-2.5-pro")}) as server:
        google = make_settings(options={"google:gemini-2.5-pro": {"base_url": f"http://{server.host}/v1beta/openai"}})
        endpoint = get_only_endpoint(list_offered_models(google, {}))
    (model,) = endpoint.models
    assert (model.name, model.listed, model.input_usd is not None) == ("google:gemini-2.5-pro", True, True)


def test_anthropic_endpoint_gets_its_own_headers():
    with serve_lists({"/v1/models": build_list("claude-sonnet-5-5")}) as server:
        environ = {"ANTHROPIC_API_KEY": SECRET, "ANTHROPIC_BASE_URL": f"http://{server.host}"}
        endpoint = get_only_endpoint(list_offered_models(make_settings(), environ))
        [(_, headers)] = server.asked
    assert (headers["x-api-key"], "anthropic-version" in headers) == (SECRET, True)
    assert [model.name for model in endpoint.models] == ["anthropic:claude-sonnet-5-5"]


def test_ollama_and_compatible_servers_list_their_models():
    tags = {"models": [{"name": "qwen3:8b"}, {"name": "llama4:latest"}]}
    with serve_lists({"/api/tags": tags}) as server:
        endpoint = get_only_endpoint(list_offered_models(make_settings(), {"OLLAMA_HOST": server.host}))
        assert "authorization" not in server.asked[0][1]
    assert [(model.name, model.input_usd) for model in endpoint.models] == [
        ("ollama:llama4", 0.0),
        ("ollama:qwen3:8b", 0.0),
    ]
    with serve_lists({"/v1/models": build_list("any")}) as server:
        endpoint = get_only_endpoint(list_offered_models(make_settings(), {"OLLAMA_HOST": server.host}))
        assert [path for path, _ in server.asked] == ["/api/tags", "/v1/models"]
    assert [model.name for model in endpoint.models] == ["ollama:any"]


def test_configured_model_missing_from_its_endpoint_is_marked():
    with serve_lists({"/v1/models": build_list("gpt-5")}) as server:
        url = f"http://{server.host}/v1"
        options = {"openai:typo": ModelOptions(base_url=url, key_variable="TEAM_KEY")}
        settings = make_settings(strong="openai:typo", fast="openai:typo", options=options)
        listing = list_offered_models(settings, {"TEAM_KEY": SECRET})
    endpoint = get_only_endpoint(listing)
    assert endpoint.key_variable == "TEAM_KEY"
    assert [(model.name, model.listed) for model in endpoint.models] == [("openai:typo", False), ("openai:gpt-5", True)]
    assert any(
        "openai:typo" in line and "not listed by the endpoint" in line
        for line in format_model_list(listing, 80, show_all=False)
    )


@pytest.mark.parametrize("document", [{"models": 3}, [], b"<html>", b"{", {}])
def test_endpoint_without_a_list_is_named_and_configured_model_stays(document):
    with serve_lists({"/v1/models": document}) as server:
        environ = {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": f"http://{server.host}/v1"}
        endpoint = get_only_endpoint(list_offered_models(make_settings(strong="openai:x", fast="openai:x"), environ))
    assert server.host in endpoint.problem
    assert [model.name for model in endpoint.models] == ["openai:x"]


def test_rejected_request_and_unreachable_server_are_reported():
    with serve_lists({}) as server:
        environ = {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": f"http://{server.host}/v1"}
        endpoint = get_only_endpoint(list_offered_models(make_settings(), environ))
    assert endpoint.problem == f"{server.host} refused to list its models with status 404"
    down_endpoint = get_only_endpoint(
        list_offered_models(make_settings(), {"OPENAI_BASE_URL": "http://u:p@127.0.0.1:9/v1"})
    )
    assert (down_endpoint.host, down_endpoint.problem.startswith("127.0.0.1:9 cannot be reached")) == (
        "127.0.0.1:9",
        True,
    )


def test_unresponsive_server_does_not_delay_the_list(monkeypatch):
    monkeypatch.setattr(model_list, "is_loopback", lambda url: False)
    silent_server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)  # takes connections, and never serves them
    try:
        environ = {"OPENAI_BASE_URL": f"http://127.0.0.1:{silent_server.server_address[1]}/v1"}
        endpoint = get_only_endpoint(list_offered_models(make_settings(), environ, seconds=0.3))
    finally:
        silent_server.server_close()
    assert "did not answer within 0.3 s" in endpoint.problem


def test_missing_configuration_lists_what_to_set():
    listing = list_offered_models(make_settings(), {})
    assert (listing.uses, listing.endpoints) == ("", ())
    text = "\n".join(format_model_list(listing, 80, show_all=False))
    for part in ("not set  OPENAI_API_KEY", "export OPENAI_API_KEY=…", "ollama:", "manual", "command:", "replay:"):
        assert part in text


def test_long_model_list_is_cut_and_lines_fit_the_screen():
    names = [f"in-house-{number:02}" for number in range(40)]
    with serve_lists({"/v1/models": build_list(*names)}) as server:
        listing = list_offered_models(make_settings(base_url=f"http://{server.host}/v1"), {})
    short_lines, all_lines = (format_model_list(listing, 80, show_all=show_all) for show_all in (False, True))
    assert any("… and 28 more: redstart models --all" in line for line in short_lines)
    assert sum("openai:in-house" in line for line in all_lines) == 40
    assert max(map(len, short_lines)) <= 80
    assert any(line.startswith("?") for line in short_lines)
