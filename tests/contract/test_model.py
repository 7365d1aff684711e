"""Every model against the contract of the port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from redstart.core.chat import Answer, AnswerFault, Ask
from redstart.core.errors import ModelError
from redstart.ports.model.gateway import Gateway, RetryPolicy
from redstart.ports.model.lanes import ModelRoute, RouteOptions
from redstart.ports.model.port import Model
from redstart.ports.model.providers import connect
from redstart.ports.model.replay import Cassette, ReplayModel
from redstart.testing.contracts.model import HIDDEN, ModelContract, Script, asking
from redstart.testing.model import ScriptedModel
from support.server import Reply, Request, ScriptedServer, Wire

FINISH = {
    None: "stop",
    AnswerFault.empty: "stop",
    AnswerFault.truncated: "length",
    AnswerFault.refused: "content_filter",
}


@contextmanager
def served(wire: Wire, script: Script) -> Iterator[Model]:
    def reply(request: Request) -> Reply:
        # Anthropic's wire puts the result of a tool and the text after it in one turn.
        said = next(said for text, said in script.items() if request.messages[-1][1].endswith(text))
        if said is None:
            return Reply(status=500, text=f"do not show {HIDDEN}")
        return Reply(said.text, calls=said.calls, finish=FINISH[said.fault])

    with ScriptedServer(reply) as server:
        if wire is Wire.openai:
            yield connect("openai:local", base_url=server.openai_url, api_key=HIDDEN, deadline=120)
        else:
            yield connect("anthropic:local", base_url=server.anthropic_url, api_key=HIDDEN, deadline=120)


class TestOverTheWireOfOpenAI(ModelContract):
    def opened(self, script: Script):
        return served(Wire.openai, script)


class TestOverTheWireOfAnthropic(ModelContract):
    def opened(self, script: Script):
        return served(Wire.anthropic, script)


class TestThroughTheGateway(ModelContract):
    """The gateway keeps the contract of the model that it wraps, including permanent failures."""

    @contextmanager
    def opened(self, script: Script) -> Iterator[Model]:
        with served(Wire.openai, script) as model:
            lane = ModelRoute("openai:local", model, options=RouteOptions(at_once=3, tokens_a_minute=10_000_000))
            yield Gateway(lambda _: [lane], RetryPolicy(tries=2, first_wait=0.01))


class TestScripted(ModelContract):
    @contextmanager
    def opened(self, script: Script) -> Iterator[Model]:
        def answer(ask: Ask) -> str | Answer:
            said = script[ask.messages[-1].text]
            if said is None:
                raise ModelError("out of order")
            return said if said.fault or said.calls else said.text

        yield ScriptedModel(answer)

    def test_an_answer_is_given_as_it_is(self) -> None:
        assert self.answers({"?": Answer(text="x", model="m", fault=AnswerFault.budget)})[0].fault is AnswerFault.budget


class TestReplay(ModelContract):
    costs = False

    @contextmanager
    def opened(self, script: Script) -> Iterator[Model]:
        cassette = Cassette(model="recorded:model")
        for ask, said in zip(asking(script), script.values(), strict=True):
            if said is not None:
                cassette = cassette.with_call(ask.site, said)
        yield ReplayModel(cassette)
