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
from redstart.engines.journal import JournalRecorder, compute_digest
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.journal import CallPlace, HeardKind, MadeKind
from redstart.testing.states import make_state
from support.store import MemoryBlobs, create_memory_database

CALL = CallPlace("run-1", 1, "patch", 0)


class Desk:
    """A journal of one run with recorders on it."""

    def __init__(self) -> None:
        database = create_memory_database()
        self.journal, self.blobs = SqlJournal(database), MemoryBlobs()
        self.made: list[str] = []
        self.discarded: list[tuple[str, int]] = []
        store = SqlStore(database, time.time)
        asyncio.run(store.create(make_state(run_id="run-1"), folder="/f", created=datetime(2030, 1, 1, tzinfo=UTC)))
        self.fence = asyncio.run(store.claim("run-1")).fence

    def recorder(self, *, replaying: bool = False) -> JournalRecorder:
        return JournalRecorder(
            self.journal,
            self.blobs,
            CALL,
            self.fence,
            is_replaying=replaying,
            on_discard=lambda call, count: self.discarded.append((call, count)),
        )

    def ask(self, recorder: JournalRecorder, request: str, result: str, kind: str = "model") -> str:
        async def make(call: CallPlace) -> str:
            self.made.append(f"{call.ordinal}:{request}")
            return result

        return asyncio.run(recorder.call(kind, request, make))

    def hear(self, recorder: JournalRecorder, message: str) -> str:
        async def make() -> str:
            return message

        return asyncio.run(recorder.record_input("said", "[]", make))


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_reentered_step_reads_its_recorded_answers(desk):
    first_recorder = desk.recorder()
    assert [desk.ask(first_recorder, "a", "one"), desk.ask(first_recorder, "b", "two")] == ["one", "two"]
    second_recorder = desk.recorder()
    assert [desk.ask(second_recorder, "a", "other"), desk.ask(second_recorder, "b", "other")] == ["one", "two"]
    assert desk.made == ["0:a", "1:b"]


def test_repeated_request_is_a_separate_call(desk):
    recorder = desk.recorder()
    assert [desk.ask(recorder, "a", "one"), desk.ask(recorder, "a", "two")] == ["one", "two"]


def test_changed_request_discards_later_records_with_a_notice(desk):
    first_recorder = desk.recorder()
    for request in "abc":
        desk.ask(first_recorder, request, request.upper())
    upgraded = desk.recorder()
    assert desk.ask(upgraded, "a", "x") == "A"
    assert desk.ask(upgraded, "B!", "new") == "new"
    assert desk.ask(upgraded, "c", "newer") == "newer"
    assert desk.discarded == [("attempt 1, patch, call 1", 2)]


def test_replay_makes_no_call_and_names_the_missing_one(desk):
    desk.ask(desk.recorder(), "a", "one")
    replay_recorder = desk.recorder(replaying=True)
    assert desk.ask(replay_recorder, "a", "other") == "one"
    with pytest.raises(ReplayDiverged, match=r"attempt 1, patch, call 1 \(model\): it is not in the journal"):
        desk.ask(replay_recorder, "b", "two")
    with pytest.raises(ReplayDiverged, match="its request differs"):
        desk.ask(desk.recorder(replaying=True), "changed", "x")
    with pytest.raises(ReplayDiverged, match="a call of kind model"):
        desk.ask(desk.recorder(replaying=True), "a", "x", kind="recall")
    assert desk.made == ["0:a"]


def test_changed_record_does_not_match_its_digest(desk):
    desk.ask(desk.recorder(), "a", "one")
    (record,) = asyncio.run(desk.journal.list_records("run-1"))
    assert compute_digest(record._replace(digest="")) == record.digest
    for field, value in (("result", "x"), ("request_hash", "x"), ("kind", "x"), ("request", "x")):
        assert compute_digest(record._replace(**{field: value})) != record.digest


def test_first_message_is_read_again_and_shifts_no_call(desk):
    first_recorder = desk.recorder()
    assert [
        desk.hear(first_recorder, '["one"]'),
        desk.ask(first_recorder, "a", "A"),
        desk.hear(first_recorder, '["two"]'),
    ] == [
        '["one"]',
        "A",
        '["one"]',
    ]
    assert desk.made == ["0:a"]
    second_recorder = desk.recorder(replaying=True)
    assert [desk.hear(second_recorder, '["three"]'), desk.ask(second_recorder, "a", "x")] == ['["one"]', "A"]
    assert desk.discarded == []


def test_run_recorded_before_messages_existed_replays_without_them(desk):
    desk.ask(desk.recorder(), "a", "A")
    replay_recorder = desk.recorder(replaying=True)
    assert [desk.hear(replay_recorder, '["new"]'), desk.ask(replay_recorder, "a", "x")] == ["[]", "A"]


def test_changed_message_record_is_named(desk):
    desk.hear(desk.recorder(), '["one"]')
    (record,) = asyncio.run(desk.journal.list_records("run-1"))
    asyncio.run(desk.journal.discard(record.call, desk.fence))
    asyncio.run(desk.journal.add(record._replace(result='["forged"]'), desk.fence))
    with pytest.raises(ReplayDiverged, match=r"attempt 1, patch, what was heard \(said\): its record was changed"):
        desk.hear(desk.recorder(replaying=True), "[]")


@pytest.mark.parametrize(("method", "kinds"), [("call", MadeKind), ("record_input", HeardKind)])
def test_listed_call_kinds_match_the_recorded_ones(method: str, kinds: object) -> None:
    recorded_kinds: set[object] = set()
    for module in (journal, recall):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == f"self._recorder.{method}":
                recorded_kinds.add(ast.literal_eval(node.args[0]))
    assert recorded_kinds == set(get_args(kinds))
