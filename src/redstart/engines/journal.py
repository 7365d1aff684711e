"""The journal of a step: every outgoing call is recorded before its result is used. A step that starts again gets the
recorded results.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Protocol

from pydantic import TypeAdapter

from redstart.core.change import EditKind, FitCounts
from redstart.core.chat import Answer, Ask, Usage
from redstart.core.errors import Needs, ReplayDiverged, StoreError
from redstart.core.formats import RECORD, get_current_version
from redstart.core.frozen import FrozenValue
from redstart.core.lesson import Lesson, LessonOffer, LessonPlacement, Situation
from redstart.core.run import ChildResult, Result, RunState, Spend
from redstart.core.shell import Completed, Environment, Execution, SandboxLimits
from redstart.flow.child_runs import get_child_result, get_stopped_result, make_child_run_id
from redstart.ports.install.port import Installer, InstallRequest, InstallResult
from redstart.ports.memory.port import Lessons
from redstart.ports.model.port import Model
from redstart.ports.sandbox.port import Sandbox, SandboxSession, open_sandbox_session
from redstart.ports.store.port.blobs import Blobs
from redstart.ports.store.port.journal import (
    CallKind,
    CallPlace,
    HeardKind,
    Journal,
    JournalRecord,
    MadeKind,
    compute_digest,
)
from redstart.ports.store.port.ordinals import OutsideOrdinal, get_handover_ordinal, is_handover
from redstart.ports.store.port.person import PersonReply
from redstart.ports.store.port.runs import PersonMessage, PersonWord, Store

MAX_MESSAGES = 5
"""Maximum messages of a person that a step receives: the newest."""

_MESSAGES_ADAPTER = TypeAdapter(tuple[str, ...])
_CHILD_RESULTS_ADAPTER = TypeAdapter(tuple[ChildResult, ...])
_FIT_COUNTS_ADAPTER = TypeAdapter(dict[EditKind, FitCounts])
_REPLY: TypeAdapter[PersonReply | None] = TypeAdapter(PersonReply | None)


class JournalRecorder:
    """The journal as one step sees it. Calls get ordinals in the order in which the step makes them.

    With `replaying`, nothing is called and nothing is written: a call that is not in the journal, or differs from it,
    raises `ReplayDiverged` with its name. Without it, the records of such a call and of all later ones are discarded
    and the calls are made again (the code has been upgraded), and `on_discard` is called.
    """

    def __init__(
        self,
        journal: Journal,
        blobs: Blobs,
        call: CallPlace,
        fence: int,
        *,
        is_replaying: bool = False,
        on_discard: Callable[[str, int], None],
    ) -> None:
        self._journal, self._blobs, self._next, self._fence = journal, blobs, call, fence
        self._is_replaying, self._on_discard = is_replaying, on_discard
        # The records of the step from earlier drives, by ordinal; None until the first call.
        self._stored_records: dict[int, JournalRecord] | None = None

    async def call(self, kind: MadeKind, request: str, make: Callable[[CallPlace], Awaitable[str]]) -> str:
        """Return the recorded result of this call, else call `make` and record its result."""
        call, self._next = self._next, self._next._replace(ordinal=self._next.ordinal + 1)
        return await self._call_or_replay(call, await self._find(call), kind, request, make)

    async def record_input(
        self,
        kind: HeardKind,
        silence: str,
        make: Callable[[], Awaitable[str]],
        *,
        ordinal: OutsideOrdinal = OutsideOrdinal.heard,
    ) -> str:
        """Return input from outside the run as the step first received it. It uses none of the step's ordinals.

        A run that was recorded before this input existed is replayed with the default. If text was removed from a
        record, the first call that depends on it differs.
        """
        call = self._next._replace(ordinal=ordinal.value)
        stored_record = await self._find(call)
        if stored_record is None and self._is_replaying:
            return silence

        async def listen(call: CallPlace) -> str:  # noqa: ARG001
            return await make()

        return await self._call_or_replay(call, stored_record, kind, "", listen)

    @property
    def handovers(self) -> int:
        """The hand-overs that the step has needed so far."""
        return sum(is_handover(ordinal) for ordinal in self._stored_records or ())

    async def _find(self, call: CallPlace) -> JournalRecord | None:
        """Find the record of a call. One query reads those of the whole step: only this driver may add to them."""
        if self._stored_records is None:
            records = await self._journal.list_step(call)
            self._stored_records = {record.call.ordinal: record for record in records}
        return self._stored_records.get(call.ordinal)

    async def _call_or_replay(
        self,
        call: CallPlace,
        stored_record: JournalRecord | None,
        kind: CallKind,
        request: str,
        make: Callable[[CallPlace], Awaitable[str]],
    ) -> str:
        request_hash = _hash_request(kind, request)
        recorded = "" if stored_record is None else stored_record.upgrade_result()
        difference = _describe_difference(stored_record, kind, request_hash)
        if not difference:
            return recorded
        if self._is_replaying:
            raise ReplayDiverged(f"{call} ({kind}): {difference}")
        if stored_record is not None:
            self._on_discard(str(call), await self._journal.discard(call, self._fence))
            kept = (self._stored_records or {}).items()
            self._stored_records = {ordinal: record for ordinal, record in kept if ordinal < call.ordinal}
        try:
            result = await make(call)
        except Needs as error:
            await self._record_handover(call, error.privilege)
            raise
        await self._add(call, kind, request, result)
        return result

    async def _record_handover(self, call: CallPlace, privilege: str) -> None:
        """Record that another driver must make this call, once even if several drivers come to it in vain."""
        handover = call._replace(ordinal=get_handover_ordinal(call.ordinal))
        if await self._find(handover) is None:
            await self._add(handover, "handover", "", json.dumps(privilege))

    async def _add(self, call: CallPlace, kind: CallKind, request: str, result: str) -> None:
        stored = self._blobs.put(request.encode()) if request else ""
        request_hash = _hash_request(kind, request)
        record = JournalRecord(call, kind, request_hash, stored, result, "", RECORD.version, get_current_version())
        record = record._replace(digest=compute_digest(record))
        await self._journal.add(record, self._fence)
        self._stored_records = {**(self._stored_records or {}), call.ordinal: record}


def _hash_request(kind: CallKind, request: str) -> str:
    return hashlib.sha256(f"{kind}\x1f{request}".encode()).hexdigest()


def _describe_difference(stored_record: JournalRecord | None, kind: str, request_hash: str) -> str:
    if stored_record is None:
        return "it is not in the journal"
    if compute_digest(stored_record._replace(digest="")) != stored_record.digest:
        return "its record was changed"
    if stored_record.kind != kind:
        return f"the journal holds a call of kind {stored_record.kind}"
    return "" if stored_record.request_hash == request_hash else "its request differs from the one recorded"


class KeptAnswer(FrozenValue):
    """An answer in the journal: its text is a blob."""

    answer: Answer
    text: str

    @classmethod
    def from_record(cls, record: JournalRecord) -> KeptAnswer:
        """Read the answer of a record. Raises `NewerFormat`, and `ValidationError` if the record holds no answer."""
        return cls.model_validate_json(record.upgrade_result(), extra="ignore")


class _KeptCompleted(FrozenValue):
    completed: Completed
    output: str
    files: dict[str, str]


class CallCounter(Protocol):
    def count(self, usage: Usage) -> None: ...


class JournaledModel:
    """A model whose answers are recorded; `inner` is None for a driver without a model."""

    def __init__(self, inner: Model | None, recorder: JournalRecorder, blobs: Blobs, ledger: CallCounter) -> None:
        self._inner, self._recorder, self._blobs, self._ledger = inner, recorder, blobs, ledger
        self._question_count = 0

    async def ask(self, ask: Ask) -> Answer:
        number, self._question_count = self._question_count, self._question_count + 1

        async def make(call: CallPlace) -> str:
            if self._inner is None:
                raise Needs("think")
            site = f"{call.attempt}/{call.step}/{call.ordinal}"
            answer = await self._inner.ask(ask.model_copy(update={"site": site, "number": number}))
            stored_answer = answer.model_copy(update={"text": ""})
            return KeptAnswer(answer=stored_answer, text=self._blobs.put(answer.text.encode())).model_dump_json()

        result = await self._recorder.call("model", ask.model_dump_json(), make)
        stored_answer = KeptAnswer.model_validate_json(result, extra="ignore")
        if stored_answer.answer.was_asked:
            self._ledger.count(stored_answer.answer.usage)
        return stored_answer.answer.model_copy(update={"text": self._blobs.get(stored_answer.text).decode()})


class JournaledSandbox:
    """A sandbox whose executions are recorded; `inner` is None for a driver without a sandbox."""

    def __init__(
        self,
        inner: Sandbox | None,
        recorder: JournalRecorder,
        blobs: Blobs,
        watch: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Each execution that really runs is wrapped in the context manager from `watch`."""
        self._inner, self._recorder, self._blobs, self._watch = inner, recorder, blobs, watch
        self.tier = inner.tier if inner else "none"

    async def run(self, execution: Execution) -> Completed:
        async def get_session() -> SandboxSession:
            return self._needed

        return await self.run_recorded(execution, get_session)

    @asynccontextmanager
    async def open_session(self, environment: Environment, limits: SandboxLimits) -> AsyncGenerator[SandboxSession]:
        """Open a session. The inner session opens at the first execution that is not in the journal: a replay needs
        none."""
        async with AsyncExitStack() as stack:
            sessions: list[SandboxSession] = []

            async def get_session() -> SandboxSession:
                if not sessions:
                    sessions.append(
                        await stack.enter_async_context(open_sandbox_session(self._needed, environment, limits))
                    )
                return sessions[0]

            yield _JournaledSession(self, get_session)

    @property
    def _needed(self) -> Sandbox:
        if self._inner is None:
            raise Needs("act")
        return self._inner

    async def run_recorded(
        self, execution: Execution, open_session: Callable[[], Awaitable[SandboxSession]]
    ) -> Completed:
        """Return the recorded result of this execution, else run it in a session from `open_session` and record it."""

        async def make(call: CallPlace) -> str:  # noqa: ARG001  (an execution does not depend on where it was asked for)
            session = await open_session()
            with self._watch():
                completed = await session.run(execution)
            return _KeptCompleted(
                completed=completed.model_copy(update={"output": "", "files": {}}),
                output=self._blobs.put(completed.output.encode()),
                files={name: self._blobs.put(text.encode()) for name, text in completed.files.items()},
            ).model_dump_json()

        result = await self._recorder.call("sandbox", execution.model_dump_json(), make)
        stored_result = _KeptCompleted.model_validate_json(result, extra="ignore")
        files = {name: self._blobs.get(blob).decode() for name, blob in stored_result.files.items()}
        return stored_result.completed.model_copy(
            update={"output": self._blobs.get(stored_result.output).decode(), "files": files}
        )


class _JournaledSession:
    """A session whose executions are recorded like any other."""

    def __init__(self, sandbox: JournaledSandbox, open_session: Callable[[], Awaitable[SandboxSession]]) -> None:
        self._sandbox, self._open_session = sandbox, open_session

    async def run(self, execution: Execution) -> Completed:
        return await self._sandbox.run_recorded(execution, self._open_session)


class JournaledLessons:
    """Lessons whose offers are recorded as outside input: a run from before lessons existed is replayed without any."""

    def __init__(self, inner: Lessons, recorder: JournalRecorder) -> None:
        self._inner, self._recorder = inner, recorder

    async def offer_lessons(self, situation: Situation) -> LessonOffer:
        async def make() -> str:
            return (await self._inner.offer_lessons(situation)).model_dump_json()

        none = LessonOffer().model_dump_json()
        result = await self._recorder.record_input("lessons", none, make, ordinal=OutsideOrdinal.taught)
        return LessonOffer.model_validate_json(result, extra="ignore")

    async def place_lesson(self, lesson: Lesson) -> LessonPlacement:
        async def make(call: CallPlace) -> str:  # noqa: ARG001
            return (await self._inner.place_lesson(lesson)).model_dump_json()

        request = lesson.model_dump_json()
        return LessonPlacement.model_validate_json(await self._recorder.call("lesson", request, make), extra="ignore")


class JournaledPerson:
    """A person's messages to the run, as the step first received them. Later messages go to a later step."""

    def __init__(self, store: Store, run: RunState, recorder: JournalRecorder) -> None:
        self._store, self._run, self._recorder = store, run, recorder

    async def read_messages(self) -> tuple[str, ...]:
        async def make() -> str:
            spec = self._run.spec
            # A message to a run with child runs is meant for the child runs.
            runs = ([spec.parent] if spec.errand else []) + [self._run.run_id]
            texts = [message.text for run in runs for message in await self._store.list_messages(run) if message.text]
            return _MESSAGES_ADAPTER.dump_json(tuple(texts[-MAX_MESSAGES:])).decode()

        return _MESSAGES_ADAPTER.validate_json(await self._recorder.record_input("said", "[]", make))

    async def answer(self) -> PersonReply | None:
        async def make() -> str:
            return _REPLY.dump_json(find_reply(self._run, await self._store.list_messages(self._run.run_id))).decode()

        return _REPLY.validate_json(await self._recorder.record_input("answer", "null", make))


class JournaledInstaller:
    """An installer whose results are recorded. It installs again if the recorded environment is not on this
    machine."""

    def __init__(self, inner: Installer | None, recorder: JournalRecorder) -> None:
        self._inner, self._recorder = inner, recorder

    async def prepare(self, request: InstallRequest) -> InstallResult:
        async def make(call: CallPlace) -> str:  # noqa: ARG001
            return (await self._install(request)).model_dump_json()

        result = await self._recorder.call("install", request.model_dump_json(), make)
        install_result = InstallResult.model_validate_json(result, extra="ignore")
        is_missing = install_result.folder and not Path(install_result.folder).exists()
        return await self._install(request) if is_missing and self._inner is not None else install_result

    async def _install(self, request: InstallRequest) -> InstallResult:
        if self._inner is None:
            raise Needs("act")
        return await asyncio.to_thread(self._inner.prepare, request)


class JournaledErrands:
    """The recorded results of the child runs that the run waits for."""

    def __init__(self, store: Store, journal: Journal, run: RunState, recorder: JournalRecorder) -> None:
        self._store, self._journal, self._run, self._recorder = store, journal, run, recorder

    async def load_results(self) -> tuple[ChildResult, ...]:
        decision = self._run.now.decide
        ids = (
            [make_child_run_id(self._run.run_id, child_task.number) for child_task in decision.errands]
            if decision
            else []
        )

        async def make(call: CallPlace) -> str:  # noqa: ARG001
            is_race = self._run.spec.candidates is not None and not self._run.spec.candidates.choose
            if is_race and (ended := await self._load_race(ids)):
                return _CHILD_RESULTS_ADAPTER.dump_json(ended).decode()
            results = [(name, get_child_result(await self._store.load(name))) for name in ids]
            if unfinished := [name for name, item in results if item is None]:
                raise StoreError(f"run {unfinished[0]} has not ended")
            return _CHILD_RESULTS_ADAPTER.dump_json(tuple(item for _, item in results if item)).decode()

        return _CHILD_RESULTS_ADAPTER.validate_json(
            await self._recorder.call("errands", " ".join(ids), make), extra="ignore"
        )

    async def _load_race(self, ids: Sequence[str]) -> tuple[ChildResult, ...]:
        """Load how each candidate that began has ended or was stopped; empty if none of them is verified."""
        rows = await self._store.list_runs(prefix=f"{self._run.run_id}.")
        begun = {row.run_id for row in rows}
        children = [await self._store.load(name) for name in ids if name in begun]
        if not any(child.result is Result.verified for child in children):
            return ()
        return tuple(
            [get_child_result(child) or get_stopped_result(child, await self._count_spend(child)) for child in children]
        )

    async def _count_spend(self, child: RunState) -> Spend:
        """Add up what a stopped run spent, with the recorded answers of the step in which it was stopped."""
        committed = {(row.attempt, row.step.value) for row in await self._store.list_steps(child.run_id)}
        spend = child.spend
        for record in await self._journal.list_records(child.run_id):
            if record.kind != "model" or (record.call.attempt, record.call.step) in committed:
                continue
            answer = KeptAnswer.from_record(record).answer
            if answer.was_asked:
                spend = spend.count(answer.usage)
        return spend


class JournaledForms:
    """The counts of edit forms as the step first saw them: other runs may add to them during the step.

    `model` is None for a driver without a model, which does not know which model will be asked.
    """

    def __init__(self, store: Store, model: str | None, tenant: str, recorder: JournalRecorder) -> None:
        self._store, self._model, self._tenant, self._recorder = store, model, tenant, recorder

    async def count_fits(self) -> dict[EditKind, FitCounts]:
        async def make() -> str:
            if self._model is None:
                raise Needs("think")
            counts = await self._store.count_fits(self._model, tenant=self._tenant)
            return _FIT_COUNTS_ADAPTER.dump_json(counts).decode()

        return _FIT_COUNTS_ADAPTER.validate_json(
            await self._recorder.record_input("tally", "{}", make, ordinal=OutsideOrdinal.counted)
        )


def find_reply(run: RunState, messages: list[PersonMessage]) -> PersonReply | None:
    """Return the newest answer to the question that the run waits for; answers to earlier questions do not count."""
    answers = [message for message in messages if message.word is not PersonWord.say and message.version == run.version]
    return PersonReply(answers[-1].word is PersonWord.accept, answers[-1].text) if answers else None
