"""The journal of a step: every outgoing call is recorded before its result is used, and repeated on re-entry."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Protocol

from pydantic import TypeAdapter

from redstart.core.change import EditKind, FitCounts
from redstart.core.chat import Answer, Ask, Usage
from redstart.core.errors import Needs, ReplayDiverged, StoreError
from redstart.core.formats import RECORD, this_version
from redstart.core.lesson import Lesson, LessonOffer, LessonPlacement, Situation
from redstart.core.noun import FrozenValue
from redstart.core.run import ChildResult, RunState
from redstart.core.shell import Completed, Environment, Execution, SandboxLimits
from redstart.flow.errands import ended, errand_id
from redstart.ports.install.port import Installer, InstallRequest, InstallResult
from redstart.ports.memory.port import Lessons
from redstart.ports.model.port import Model
from redstart.ports.sandbox.port import Sandbox, SandboxSession, session_of
from redstart.ports.store.port.blobs import Blobs
from redstart.ports.store.port.journal import CallKind, CallPlace, HeardKind, Journal, JournalRecord, MadeKind, digest
from redstart.ports.store.port.ordinals import OutsideOrdinal
from redstart.ports.store.port.person import PersonReply
from redstart.ports.store.port.runs import PersonMessage, PersonWord, Store

LAST_WORDS = 5
"""Maximum messages of a person that a step receives: the newest."""

_SAID = TypeAdapter(tuple[str, ...])
_ENDED = TypeAdapter(tuple[ChildResult, ...])
_TALLY = TypeAdapter(dict[EditKind, FitCounts])
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
        replaying: bool = False,
        on_discard: Callable[[str, int], None],
    ) -> None:
        self._journal, self._blobs, self._next, self._fence = journal, blobs, call, fence
        self._replaying, self._on_discard = replaying, on_discard

    async def call(self, kind: MadeKind, request: str, make: Callable[[CallPlace], Awaitable[str]]) -> str:
        """Return the recorded result of this call, else call `make` and record its result."""
        call, self._next = self._next, self._next._replace(ordinal=self._next.ordinal + 1)
        return await self._made(call, await self._journal.find(call), kind, request, make)

    async def heard(
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
        found = await self._journal.find(call)
        if found is None and self._replaying:
            return silence

        async def listen(call: CallPlace) -> str:  # noqa: ARG001
            return await make()

        return await self._made(call, found, kind, "", listen)

    async def _made(
        self,
        call: CallPlace,
        found: JournalRecord | None,
        kind: CallKind,
        request: str,
        make: Callable[[CallPlace], Awaitable[str]],
    ) -> str:
        request_hash = hashlib.sha256(f"{kind}\x1f{request}".encode()).hexdigest()
        recorded = "" if found is None else found.current_result()
        differs = _difference(found, kind, request_hash)
        if not differs:
            return recorded
        if self._replaying:
            raise ReplayDiverged(f"{call} ({kind}): {differs}")
        if found is not None:
            self._on_discard(str(call), await self._journal.discard(call, self._fence))
        result = await make(call)
        stored = self._blobs.put(request.encode()) if request else ""
        record = JournalRecord(call, kind, request_hash, stored, result, "", RECORD.version, this_version())
        await self._journal.add(record._replace(digest=digest(record)), self._fence)
        return result


def _difference(found: JournalRecord | None, kind: str, request_hash: str) -> str:
    if found is None:
        return "it is not in the journal"
    if digest(found._replace(digest="")) != found.digest:
        return "its record was changed"
    if found.kind != kind:
        return f"the journal holds a call of kind {found.kind}"
    return "" if found.request_hash == request_hash else "its request differs from the one recorded"


class KeptAnswer(FrozenValue):
    """An answer in the journal: its text is a blob."""

    answer: Answer
    text: str

    @classmethod
    def of(cls, record: JournalRecord) -> KeptAnswer:
        """Read the answer of a record. Raises `NewerFormat`, and `ValidationError` if the record holds no answer."""
        return cls.model_validate_json(record.current_result(), extra="ignore")


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

    async def ask(self, ask: Ask) -> Answer:
        async def make(call: CallPlace) -> str:
            if self._inner is None:
                raise Needs("think")
            site = f"{call.attempt}/{call.step}/{call.ordinal}"
            answer = await self._inner.ask(ask.model_copy(update={"site": site}))
            kept = answer.model_copy(update={"text": ""})
            return KeptAnswer(answer=kept, text=self._blobs.put(answer.text.encode())).model_dump_json()

        result = await self._recorder.call("model", ask.model_dump_json(), make)
        kept = KeptAnswer.model_validate_json(result, extra="ignore")
        if kept.answer.asked:
            self._ledger.count(kept.answer.usage)
        return kept.answer.model_copy(update={"text": self._blobs.get(kept.text).decode()})


class JournaledSandbox:
    """A sandbox whose executions are recorded; `inner` is None for a driver without a sandbox."""

    def __init__(
        self,
        inner: Sandbox | None,
        recorder: JournalRecorder,
        blobs: Blobs,
        watched: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Each execution that really runs is wrapped in the context manager from `watch`."""
        self._inner, self._recorder, self._blobs, self._watched = inner, recorder, blobs, watched
        self.tier = inner.tier if inner else "none"

    async def run(self, execution: Execution) -> Completed:
        async def there() -> SandboxSession:
            return self._needed

        return await self.recorded(execution, there)

    @asynccontextmanager
    async def session(self, environment: Environment, limits: SandboxLimits) -> AsyncGenerator[SandboxSession]:
        """Open a session. The inner session opens at the first execution that is not in the journal: a replay needs
        none."""
        async with AsyncExitStack() as opened:
            held: list[SandboxSession] = []

            async def there() -> SandboxSession:
                if not held:
                    held.append(await opened.enter_async_context(session_of(self._needed, environment, limits)))
                return held[0]

            yield _JournaledSession(self, there)

    @property
    def _needed(self) -> Sandbox:
        if self._inner is None:
            raise Needs("act")
        return self._inner

    async def recorded(self, execution: Execution, there: Callable[[], Awaitable[SandboxSession]]) -> Completed:
        """Return the recorded result of this execution, else run it in a session from `open_session` and record it."""

        async def make(call: CallPlace) -> str:  # noqa: ARG001  (an execution does not depend on where it was asked for)
            session = await there()
            with self._watched():
                completed = await session.run(execution)
            return _KeptCompleted(
                completed=completed.model_copy(update={"output": "", "files": {}}),
                output=self._blobs.put(completed.output.encode()),
                files={name: self._blobs.put(text.encode()) for name, text in completed.files.items()},
            ).model_dump_json()

        result = await self._recorder.call("sandbox", execution.model_dump_json(), make)
        kept = _KeptCompleted.model_validate_json(result, extra="ignore")
        files = {name: self._blobs.get(blob).decode() for name, blob in kept.files.items()}
        return kept.completed.model_copy(update={"output": self._blobs.get(kept.output).decode(), "files": files})


class _JournaledSession:
    """A session whose executions are recorded like any other."""

    def __init__(self, journaled: JournaledSandbox, there: Callable[[], Awaitable[SandboxSession]]) -> None:
        self._journaled, self._there = journaled, there

    async def run(self, execution: Execution) -> Completed:
        return await self._journaled.recorded(execution, self._there)


class JournaledLessons:
    """Lessons whose offers are recorded as outside input: a run from before lessons existed is replayed without any."""

    def __init__(self, inner: Lessons, recorder: JournalRecorder) -> None:
        self._inner, self._recorder = inner, recorder

    async def offered(self, situation: Situation) -> LessonOffer:
        async def make() -> str:
            return (await self._inner.offered(situation)).model_dump_json()

        none = LessonOffer().model_dump_json()
        result = await self._recorder.heard("lessons", none, make, ordinal=OutsideOrdinal.taught)
        return LessonOffer.model_validate_json(result, extra="ignore")

    async def placed(self, lesson: Lesson) -> LessonPlacement:
        async def make(call: CallPlace) -> str:  # noqa: ARG001
            return (await self._inner.placed(lesson)).model_dump_json()

        request = lesson.model_dump_json()
        return LessonPlacement.model_validate_json(await self._recorder.call("lesson", request, make), extra="ignore")


class JournaledPerson:
    """A person's messages to the run, as the step first received them. Later messages go to a later step."""

    def __init__(self, store: Store, run: RunState, recorder: JournalRecorder) -> None:
        self._store, self._run, self._recorder = store, run, recorder

    async def said(self) -> tuple[str, ...]:
        async def make() -> str:
            spec = self._run.spec
            # A message to a run with child runs is meant for the child runs.
            runs = ([spec.parent] if spec.errand else []) + [self._run.run_id]
            texts = [message.text for run in runs for message in await self._store.told(run) if message.text]
            return _SAID.dump_json(tuple(texts[-LAST_WORDS:])).decode()

        return _SAID.validate_json(await self._recorder.heard("said", "[]", make))

    async def answer(self) -> PersonReply | None:
        async def make() -> str:
            return _REPLY.dump_json(reply_to(self._run, await self._store.told(self._run.run_id))).decode()

        return _REPLY.validate_json(await self._recorder.heard("answer", "null", make))


class JournaledInstaller:
    """An installer whose results are recorded. It installs again if the recorded environment is not on this
    machine."""

    def __init__(self, inner: Installer | None, recorder: JournalRecorder) -> None:
        self._inner, self._recorder = inner, recorder

    async def prepare(self, request: InstallRequest) -> InstallResult:
        async def make(call: CallPlace) -> str:  # noqa: ARG001
            return (await self._made(request)).model_dump_json()

        result = await self._recorder.call("install", request.model_dump_json(), make)
        told = InstallResult.model_validate_json(result, extra="ignore")
        gone = told.folder and not Path(told.folder).exists()
        return await self._made(request) if gone and self._inner is not None else told

    async def _made(self, request: InstallRequest) -> InstallResult:
        if self._inner is None:
            raise Needs("act")
        return await asyncio.to_thread(self._inner.prepare, request)


class JournaledErrands:
    """The recorded results of the child runs that the run waits for."""

    def __init__(self, store: Store, run: RunState, recorder: JournalRecorder) -> None:
        self._store, self._run, self._recorder = store, run, recorder

    async def ended(self) -> tuple[ChildResult, ...]:
        asked = self._run.now.decide
        ids = [errand_id(self._run.run_id, errand.number) for errand in asked.errands] if asked else []

        async def make(call: CallPlace) -> str:  # noqa: ARG001
            found = [(name, ended(await self._store.load(name))) for name in ids]
            if left := [name for name, item in found if item is None]:
                raise StoreError(f"run {left[0]} has not ended")
            return _ENDED.dump_json(tuple(item for _, item in found if item)).decode()

        return _ENDED.validate_json(await self._recorder.call("errands", " ".join(ids), make), extra="ignore")


class JournaledForms:
    """The counts of edit forms as the step first saw them: other runs may add to them during the step.

    `model` is None for a driver without a model, which does not know which model will be asked.
    """

    def __init__(self, store: Store, model: str | None, tenant: str, recorder: JournalRecorder) -> None:
        self._store, self._model, self._tenant, self._recorder = store, model, tenant, recorder

    async def tally(self) -> dict[EditKind, FitCounts]:
        async def make() -> str:
            if self._model is None:
                raise Needs("think")
            counts = await self._store.tally(self._model, tenant=self._tenant)
            return _TALLY.dump_json(counts).decode()

        return _TALLY.validate_json(await self._recorder.heard("tally", "{}", make, ordinal=OutsideOrdinal.counted))


def reply_to(run: RunState, told: list[PersonMessage]) -> PersonReply | None:
    """Return the newest answer to the question that the run waits for; answers to earlier questions do not count."""
    answers = [message for message in told if message.word is not PersonWord.say and message.version == run.version]
    return PersonReply(answers[-1].word is PersonWord.accept, answers[-1].text) if answers else None
