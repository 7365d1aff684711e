"""Every model against the contract of the port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from redstart.core.chat import Answer, AnswerFault, Ask
from redstart.core.errors import ModelError
from redstart.ports.model.gateway import Gateway, RetryPolicy
from redstart.ports.model.port import Model
from redstart.ports.model.providers import connect
from redstart.ports.model.replay import Cassette, ReplayModel
from redstart.ports.model.routes import ModelRoute, RouteOptions
from redstart.testing.contracts.model import HIDDEN_VALUE, ModelContract, Script, create_requests
from redstart.testing.model import ScriptedModel
from support.server import Reply, Request, ScriptedServer, Wire

FINISH = {
    None: "stop",
    AnswerFault.empty: "stop",
    AnswerFault.truncated: "length",
    AnswerFault.refused: "content_filter",
}


@contextmanager
def serve_model(wire: Wire, script: Script) -> Iterator[Model]:
    def reply(request: Request) -> Reply:
        # Anthropic's wire puts the result of a tool and the text after it in one turn.
        answer = next(answer for text, answer in script.items() if request.messages[-1][1].endswith(text))
        if answer is None:
            return Reply(status=500, text=f"do not show {HIDDEN_VALUE}")
        return Reply(answer.text, calls=answer.calls, finish=FINISH[answer.fault])

    with ScriptedServer(reply) as server:
        if wire is Wire.openai:
            yield connect("openai:local", base_url=server.openai_url, api_key=HIDDEN_VALUE, deadline=120)
        else:
            yield connect("anthropic:local", base_url=server.anthropic_url, api_key=HIDDEN_VALUE, deadline=120)


class TestOverTheWireOfOpenAI(ModelContract):
    def open_model(self, script: Script):
        return serve_model(Wire.openai, script)


class TestOverTheWireOfAnthropic(ModelContract):
    def open_model(self, script: Script):
        return serve_model(Wire.anthropic, script)


class TestThroughTheGateway(ModelContract):
    """The gateway keeps the contract of the model that it wraps, including permanent failures."""

    @contextmanager
    def open_model(self, script: Script) -> Iterator[Model]:
        with serve_model(Wire.openai, script) as model:
            route = ModelRoute("openai:local", model, options=RouteOptions(at_once=3, tokens_a_minute=10_000_000))
            yield Gateway(lambda _: [route], RetryPolicy(max_calls=2, first_wait=0.01))


class TestScripted(ModelContract):
    @contextmanager
    def open_model(self, script: Script) -> Iterator[Model]:
        def answer(ask: Ask) -> str | Answer:
            scripted_answer = script[ask.messages[-1].text]
            if scripted_answer is None:
                raise ModelError("out of order")
            return scripted_answer if scripted_answer.fault or scripted_answer.calls else scripted_answer.text

        yield ScriptedModel(answer)

    def test_answer_is_returned_unchanged(self) -> None:
        assert (
            self.collect_answers({"?": Answer(text="x", model="m", fault=AnswerFault.budget)})[0].fault
            is AnswerFault.budget
        )


class TestReplay(ModelContract):
    costs = False

    @contextmanager
    def open_model(self, script: Script) -> Iterator[Model]:
        cassette = Cassette(model="recorded:model")
        for ask, answer in zip(create_requests(script), script.values(), strict=True):
            if answer is not None:
                cassette = cassette.with_call(ask.site, answer)
        yield ReplayModel(cassette)
