from __future__ import annotations

import ast
import asyncio
import inspect
import time
from datetime import UTC, datetime
from typing import get_args

import pytest

from redstart.core.errors import ReplayDiverged
from redstart.engines import journal, recall
from redstart.engines.journal import JournalRecorder, digest
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.journal import CallPlace, HeardKind, MadeKind
from redstart.testing.states import state
from support.store import MemoryBlobs, memory_database

CALL = CallPlace("run-1", 1, "patch", 0)


class Desk:
    """A journal of one run with recorders on it."""

    def __init__(self) -> None:
        database = memory_database()
        self.journal, self.blobs = SqlJournal(database), MemoryBlobs()
        self.made: list[str] = []
        self.discarded: list[tuple[str, int]] = []
        store = SqlStore(database, time.time)
        asyncio.run(store.create(state(run_id="run-1"), folder="/f", created=datetime(2030, 1, 1, tzinfo=UTC)))
        self.fence = asyncio.run(store.claim("run-1")).fence

    def recorder(self, *, replaying: bool = False) -> JournalRecorder:
        return JournalRecorder(
            self.journal,
            self.blobs,
            CALL,
            self.fence,
            replaying=replaying,
            on_discard=lambda call, count: self.discarded.append((call, count)),
        )

    def ask(self, recorder: JournalRecorder, request: str, result: str, kind: str = "model") -> str:
        async def make(call: CallPlace) -> str:
            self.made.append(f"{call.ordinal}:{request}")
            return result

        return asyncio.run(recorder.call(kind, request, make))

    def hear(self, recorder: JournalRecorder, words: str) -> str:
        async def make() -> str:
            return words

        return asyncio.run(recorder.heard("said", "[]", make))


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_step_that_is_entered_again_reads_what_it_was_given(desk):
    first = desk.recorder()
    assert [desk.ask(first, "a", "one"), desk.ask(first, "b", "two")] == ["one", "two"]
    again = desk.recorder()
    assert [desk.ask(again, "a", "other"), desk.ask(again, "b", "other")] == ["one", "two"]
    assert desk.made == ["0:a", "1:b"]


def test_the_same_request_twice_is_two_calls(desk):
    recorder = desk.recorder()
    assert [desk.ask(recorder, "a", "one"), desk.ask(recorder, "a", "two")] == ["one", "two"]


def test_a_request_that_changed_discards_from_there_on_and_says_so(desk):
    first = desk.recorder()
    for request in "abc":
        desk.ask(first, request, request.upper())
    upgraded = desk.recorder()
    assert desk.ask(upgraded, "a", "x") == "A"
    assert desk.ask(upgraded, "B!", "new") == "new"
    assert desk.ask(upgraded, "c", "newer") == "newer"
    assert desk.discarded == [("attempt 1, patch, call 1", 2)]


def test_a_replay_makes_nothing_and_names_the_call(desk):
    desk.ask(desk.recorder(), "a", "one")
    replaying = desk.recorder(replaying=True)
    assert desk.ask(replaying, "a", "other") == "one"
    with pytest.raises(ReplayDiverged, match=r"attempt 1, patch, call 1 \(model\): it is not in the journal"):
        desk.ask(replaying, "b", "two")
    with pytest.raises(ReplayDiverged, match="its request differs"):
        desk.ask(desk.recorder(replaying=True), "changed", "x")
    with pytest.raises(ReplayDiverged, match="a call of kind model"):
        desk.ask(desk.recorder(replaying=True), "a", "x", kind="recall")
    assert desk.made == ["0:a"]


def test_a_record_that_was_changed_does_not_fit_its_digest(desk):
    desk.ask(desk.recorder(), "a", "one")
    (record,) = asyncio.run(desk.journal.records("run-1"))
    assert digest(record._replace(digest="")) == record.digest
    for field, value in (("result", "x"), ("request_hash", "x"), ("kind", "x"), ("request", "x")):
        assert digest(record._replace(**{field: value})) != record.digest


def test_what_was_heard_first_is_heard_again_and_moves_no_call(desk):
    first = desk.recorder()
    assert [desk.hear(first, '["one"]'), desk.ask(first, "a", "A"), desk.hear(first, '["two"]')] == [
        '["one"]',
        "A",
        '["one"]',
    ]
    assert desk.made == ["0:a"]
    again = desk.recorder(replaying=True)
    assert [desk.hear(again, '["three"]'), desk.ask(again, "a", "x")] == ['["one"]', "A"]
    assert desk.discarded == []


def test_a_run_of_before_anybody_could_speak_is_replayed_in_silence(desk):
    desk.ask(desk.recorder(), "a", "A")
    again = desk.recorder(replaying=True)
    assert [desk.hear(again, '["new"]'), desk.ask(again, "a", "x")] == ["[]", "A"]


def test_words_that_were_changed_are_named(desk):
    desk.hear(desk.recorder(), '["one"]')
    (record,) = asyncio.run(desk.journal.records("run-1"))
    asyncio.run(desk.journal.discard(record.call, desk.fence))
    asyncio.run(desk.journal.add(record._replace(result='["forged"]'), desk.fence))
    with pytest.raises(ReplayDiverged, match=r"attempt 1, patch, what was heard \(said\): its record was changed"):
        desk.hear(desk.recorder(replaying=True), "[]")


@pytest.mark.parametrize(("method", "kinds"), [("call", MadeKind), ("heard", HeardKind)])
def test_the_listed_kinds_of_calls_are_those_that_are_recorded(method: str, kinds: object) -> None:
    made: set[object] = set()
    for module in (journal, recall):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == f"self._recorder.{method}":
                made.add(ast.literal_eval(node.args[0]))
    assert made == set(get_args(kinds))
