"""The recorded ports of a step: what each asks, records and repeats."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from redstart.core.change import EditKind, FitCounts
from redstart.core.chat import Answer, Ask, Message, Role, Tier, Usage
from redstart.core.errors import Needs, StoreError
from redstart.core.run import Action, Attempt, ChildTask, Decision, Limits, Mode, Result, RunState, Status, Step
from redstart.engines.journal import (
    JournaledErrands,
    JournaledForms,
    JournaledInstaller,
    JournaledModel,
    JournaledPerson,
    JournaledSandbox,
    JournalRecorder,
    KeptAnswer,
    find_reply,
)
from redstart.ports.install.port import InstallRequest, InstallResult
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.journal import CallPlace
from redstart.ports.store.port.person import PersonReply
from redstart.ports.store.port.runs import PersonMessage, PersonWord
from redstart.testing.model import ScriptedModel
from redstart.testing.states import make_snapshot, make_spec, make_state
from support.store import MemoryBlobs, create_memory_database

START = datetime(2030, 1, 1, tzinfo=UTC)
QUESTION = Ask(question="patch", tier=Tier.strong, messages=(Message(role=Role.user, text="x"),), max_tokens=9)


class Desk:
    """A journal of one run with recorders of its first step on it."""

    def __init__(self) -> None:
        database = create_memory_database()
        self.journal, self.blobs = SqlJournal(database), MemoryBlobs()
        self.store = SqlStore(database, time.time)
        asyncio.run(self.store.create(make_state(), folder="/f", created=START))
        self.fence = asyncio.run(self.store.claim("run-1")).fence
        self.usages: list[Usage] = []

    def recorder(self, *, is_replaying: bool = False) -> JournalRecorder:
        def refuse(call: str, count: int) -> None:
            raise AssertionError(call, count)

        place = CallPlace("run-1", 1, "patch", 0)
        return JournalRecorder(
            self.journal, self.blobs, place, self.fence, is_replaying=is_replaying, on_discard=refuse
        )

    def count(self, usage: Usage) -> None:
        self.usages.append(usage)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def create_message(word: PersonWord, text: str, version: int = 0) -> PersonMessage:
    return PersonMessage(word, text, version, START)


class Messages:
    """A store that only has messages, and counts of edit forms."""

    def __init__(self, **messages: list[PersonMessage]) -> None:
        self._messages = messages

    async def list_messages(self, run_id: str) -> list[PersonMessage]:
        return self._messages.get(run_id.replace("-", "_"), [])

    async def count_fits(self, model: str, *, tenant: str) -> dict[EditKind, FitCounts]:
        return {EditKind.block: FitCounts(len(model), len(tenant))}


def read_messages(desk: Desk, store: Messages, run: RunState) -> tuple[str, ...]:
    return asyncio.run(JournaledPerson(cast(Any, store), run, desk.recorder()).read_messages())


def test_answer_is_recorded_and_counted_each_time_the_step_is_entered(desk: Desk) -> None:
    usage = Usage(input_tokens=3, output_tokens=2)
    scripted = ScriptedModel([Answer(text="yes", model="a:1", usage=usage)])
    for model in (scripted, None):
        answer = asyncio.run(JournaledModel(model, desk.recorder(), desk.blobs, desk).ask(QUESTION))
        assert (answer.text, answer.usage) == ("yes", usage)
    assert desk.usages == [usage, usage]
    assert [question.site for question in scripted.questions] == ["1/patch/0"]
    (record,) = asyncio.run(desk.journal.list_records("run-1"))
    kept = KeptAnswer.from_record(record)
    assert (kept.answer.text, desk.blobs.get(kept.text)) == ("", b"yes")


def test_questions_of_a_step_are_numbered_without_the_runs_between_them(desk: Desk) -> None:
    recorder = desk.recorder()
    scripted = ScriptedModel([Answer(text=text, model="a:1") for text in "ab"])
    model = JournaledModel(scripted, recorder, desk.blobs, desk)

    async def ask_twice() -> None:
        for text in "ab":
            await model.ask(QUESTION.model_copy(update={"question": text}))
            await recorder.call("sandbox", text, _make_nothing)

    asyncio.run(ask_twice())
    assert [(question.site, question.number) for question in scripted.questions] == [("1/patch/0", 0), ("1/patch/2", 1)]


async def _make_nothing(_call: CallPlace) -> str:
    return ""


def test_driver_without_a_model_names_what_it_needs(desk: Desk) -> None:
    with pytest.raises(Needs) as error:
        asyncio.run(JournaledModel(None, desk.recorder(), desk.blobs, desk).ask(QUESTION))
    assert (error.value.privilege, desk.usages) == ("think", [])
    assert JournaledSandbox(None, desk.recorder(), desk.blobs).tier == "none"
    forms = JournaledForms(cast(Any, Messages()), None, "home", desk.recorder())
    with pytest.raises(Needs) as error:
        asyncio.run(forms.count_fits())
    assert error.value.privilege == "think"


def test_counts_of_edit_forms_are_those_of_the_model_and_tenant(desk: Desk) -> None:
    forms = JournaledForms(cast(Any, Messages()), "a:1", "home", desk.recorder())
    assert asyncio.run(forms.count_fits()) == {EditKind.block: FitCounts(3, 4)}
    assert asyncio.run(JournaledForms(cast(Any, None), "a:1", "home", desk.recorder()).count_fits()) == {
        EditKind.block: FitCounts(3, 4)
    }


def test_step_reads_the_five_newest_messages(desk: Desk) -> None:
    messages = [create_message(PersonWord.say, str(number)) for number in range(7)]
    store = Messages(run_1=[*messages, create_message(PersonWord.say, "")], run_0=messages[:1])
    assert read_messages(desk, store, make_state()) == ("2", "3", "4", "5", "6")


def test_child_run_reads_the_messages_to_its_parent_first(desk: Desk) -> None:
    to_parent, to_child = ([create_message(PersonWord.say, text)] for text in ("to the parent", "to the child"))
    store = Messages(run_0=to_parent, run_1=to_child)
    child = make_state(spec=make_spec(parent="run-0", errand=1))
    assert read_messages(desk, store, child) == ("to the parent", "to the child")


def test_run_that_follows_another_does_not_read_its_messages(desk: Desk) -> None:
    store = Messages(run_0=[create_message(PersonWord.say, "to the first")])
    assert read_messages(desk, store, make_state(spec=make_spec(parent="run-0"))) == ()


def test_answer_of_a_person_is_the_same_when_the_step_runs_again(desk: Desk) -> None:
    run = make_state(version=7)
    messages = Messages(**{run.run_id.replace("-", "_"): [create_message(PersonWord.accept, "yes", run.version)]})

    def read_answer(store: Messages) -> PersonReply | None:
        return asyncio.run(JournaledPerson(cast(Any, store), run, desk.recorder()).answer())

    reply = read_answer(messages)
    assert reply == PersonReply(accepts=True, text="yes")
    assert read_answer(Messages()) == reply


def test_newest_answer_to_the_question_counts() -> None:
    run = make_state(version=7)
    answers = [
        create_message(PersonWord.accept, "an earlier question", 6),
        create_message(PersonWord.reject, "no", 7),
        create_message(PersonWord.accept, "yes after all", 7),
        create_message(PersonWord.say, "a remark", 7),
    ]
    assert find_reply(run, answers) == PersonReply(True, "yes after all")
    assert find_reply(run, answers[:2]) == PersonReply(False, "no")
    assert find_reply(run, [answers[0], answers[3]]) is None


class Installs:
    """An installer that counts how often it is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, 0

    def prepare(self, request: InstallRequest) -> InstallResult:
        self.asked += 1
        return InstallResult(key=f"{request.language} {self.asked}", folder=str(self.folder))


def test_recorded_environment_is_installed_again_only_where_it_is_missing(desk: Desk, tmp_path: Path) -> None:
    request = InstallRequest(language="python", requirements=())
    installer = Installs(tmp_path / "environment")
    installer.folder.mkdir()

    def prepare(inner: Installs | None) -> str:
        return asyncio.run(JournaledInstaller(inner, desk.recorder()).prepare(request)).key

    assert [prepare(installer), prepare(installer), prepare(None)] == ["python 1"] * 3
    installer.folder.rmdir()
    assert prepare(installer) == "python 2"
    assert prepare(None) == "python 1", "a driver that cannot install reads the record"


def test_driver_without_an_installer_names_what_it_needs(desk: Desk) -> None:
    request = InstallRequest(language="python", requirements=())
    with pytest.raises(Needs) as error:
        asyncio.run(JournaledInstaller(None, desk.recorder()).prepare(request))
    assert error.value.privilege == "act"


class Children:
    """A store that only has child runs."""

    def __init__(self, *children: RunState) -> None:
        self._children = {child.run_id: child for child in children}

    async def load(self, run_id: str) -> RunState:
        return self._children[run_id]


def test_results_of_child_runs_are_recorded_once_all_have_ended(desk: Desk) -> None:
    tasks = tuple(ChildTask(number=number, mode=Mode.fix, base=make_snapshot(), limits=Limits()) for number in (1, 2))
    decision = Decision(action=Action.spawn, reason="parts", errands=tasks)
    run = make_state(now=Attempt(entry=Step.plan, decide=decision))
    ended, other = (
        make_state(
            run_id=f"run-1.{number}", spec=make_spec(errand=number), status=Status.finished, result=Result.unsolved
        )
        for number in (1, 2)
    )
    running = make_state(run_id="run-1.2", spec=make_spec(errand=2), status=Status.running)

    def load_results(*children: RunState) -> list[tuple[int, Result | None]]:
        errands = JournaledErrands(cast(Any, Children(*children)), desk.journal, run, desk.recorder())
        return [(item.number, item.result) for item in asyncio.run(errands.load_results())]

    with pytest.raises(StoreError, match=r"run run-1.2 has not ended"):
        load_results(ended, running)
    expected = [(1, Result.unsolved), (2, Result.unsolved)]
    assert load_results(ended, other) == expected
    assert load_results() == expected, "the second time from the journal"


def test_run_without_a_decision_waits_for_no_child_run(desk: Desk) -> None:
    errands = JournaledErrands(cast(Any, Children()), desk.journal, make_state(), desk.recorder())
    assert asyncio.run(errands.load_results()) == ()
