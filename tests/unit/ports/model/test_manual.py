"""A manual model: files that a person reads and writes, including incomplete, wrong and late ones."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, Tier, Tool, ToolCall, Usage
from redstart.core.errors import ConfigError, ModelTimeout
from redstart.ports.model.manual import ManualModel
from redstart.ports.model.port import Model
from redstart.testing.contracts.model import ModelContract, Script

pytestmark = pytest.mark.slow

ASK = Ask(
    question="patch",
    tier=Tier.strong,
    messages=(Message(role=Role.system, text="You repair code."), Message(role=Role.user, text="x = 1")),
    site="1/patch/0",
)


class Told:
    """A user at the screen who calls `act` with the answer's file as soon as a question is shown."""

    def __init__(self, act: Callable[[str, Path], None] = lambda question, answer: None) -> None:
        self._act = act
        self.lines: list[str] = []

    def __call__(self, text: str) -> None:
        self.lines += text.splitlines()
        if found := re.search(r"question:\n +(.+)\n.*into:\n +(.+)\n", text):
            self._act(Path(found[1]).read_text(), Path(found[2]))


def asked(folder: Path, told: Told, ask: Ask = ASK, *, deadline: float = 120.0, quiet: float = 15.0) -> Answer:
    return asyncio.run(ManualModel(folder, told, deadline=deadline, quiet=quiet).ask(ask))


def puts(data: bytes) -> Told:
    return Told(lambda _question, answer: answer.write_bytes(data) and None)


class TestManual(ModelContract):
    costs = False

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @contextmanager
    def opened(self, script: Script) -> Iterator[Model]:
        def act(question: str, answer: Path) -> None:
            (said,) = (said for key, said in script.items() if f"\n---\n\n{key}\n" in question)
            if said is not None:
                envelope = said.model_dump_json(include={"text", "fault", "calls"})
                answer.write_bytes(f"{envelope if said.fault or said.calls else said.text}\nEND\n".encode())

        yield ManualModel(self.folder, Told(act), deadline=2.0 if None in script.values() else 60.0, quiet=60.0)


def test_the_question_is_a_page_and_the_screen_says_what_to_do(tmp_path: Path) -> None:
    told = puts(b"an edit\nEND\n")
    answer = asked(tmp_path / "new" / "folder", told)
    assert (answer.text, answer.model, answer.usage) == ("an edit", "manual", Usage())
    (page,) = (tmp_path / "new" / "folder").glob("*.question.md")
    assert page.name.startswith("1-patch-0-")
    assert "You repair code.\n\n---\n\nx = 1\n" in page.read_text()
    assert page.name.replace("question", "answer") in page.read_text().splitlines()[0]
    shown = " ".join(told.lines)
    assert all(words in shown for words in ("END", "15 seconds", "Ctrl-C"))
    assert told.lines[-1] == "read the answer: 1 line"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (b"a\n\nb\nEND", "a\n\nb"),
        (b"a\r\nb\r\n  END \r\n\n\n", "a\r\nb"),
        (b"\xef\xbb\xbfa\nEND\n", "a"),
        (b"END of it\nand more\nEND\n", "END of it\nand more"),
        ("木 – “x”\nEND\n".encode(), "木 – “x”"),
    ],
)
def test_the_last_line_ends_an_answer(written: bytes, text: str, tmp_path: Path) -> None:
    assert asked(tmp_path, puts(written)).text == text


def test_an_answer_without_its_last_line_is_taken_when_nobody_changes_it_any_more(tmp_path: Path) -> None:
    assert asked(tmp_path, puts(b"an edit\n"), quiet=0.5).text == "an edit\n"


@pytest.mark.parametrize("written", [b"half an edit\n", b"  \n", b""])
def test_an_answer_that_is_not_whole_is_waited_for(written: bytes, tmp_path: Path) -> None:
    with pytest.raises(ModelTimeout, match="no answer appeared in"):
        asked(tmp_path, puts(written), deadline=1.5, quiet=60.0)


def test_an_end_alone_says_nothing(tmp_path: Path) -> None:
    assert asked(tmp_path, puts(b"END\n")).fault is AnswerFault.empty


@pytest.mark.parametrize(
    ("written", "complaint"),
    [(b"\xff\xfea\x00\nEND\n", "not UTF-8"), (b'{"text": "cut\nEND\n', "cut off"), (None, "cannot be read")],
)
def test_one_that_cannot_be_used_is_said_once_and_another_waited_for(
    written: bytes | None, complaint: str, tmp_path: Path
) -> None:
    def act(_question: str, answer: Path) -> None:
        answer.mkdir() if written is None else answer.write_bytes(written)

    class Mends(Told):
        def __call__(self, text: str) -> None:
            super().__call__(text)
            if "waiting for a new answer" in text:
                (answer,) = tmp_path.glob("*.answer.md")
                answer.rmdir() if answer.is_dir() else answer.unlink()
                answer.write_text("mended\nEND\n")

    told = Mends(act)
    assert asked(tmp_path, told).text == "mended"
    assert [complaint in line for line in told.lines].count(True) == 1


def test_an_answer_counts_once_and_a_new_run_is_asked_anew(tmp_path: Path) -> None:
    asked(tmp_path, puts(b"first\nEND\n"))
    with pytest.raises(ModelTimeout):
        asked(tmp_path, Told(), deadline=1.0)
    assert [path.read_text() for path in tmp_path.glob("*.answered.md")] == ["first\nEND\n"]


def test_what_was_written_while_the_run_was_interrupted_is_read_when_it_is_asked_again(tmp_path: Path) -> None:
    with pytest.raises(ModelTimeout):
        asked(tmp_path, Told(), deadline=0.1)
    (page,) = tmp_path.glob("*.question.md")
    page.with_name(page.name.replace("question", "answer")).write_text("later\nEND\n")
    assert asked(tmp_path, Told()).text == "later"


def test_another_question_does_not_get_the_answer_of_the_first(tmp_path: Path) -> None:
    with pytest.raises(ModelTimeout):
        asked(tmp_path, Told(), deadline=0.1)
    (page,) = tmp_path.glob("*.question.md")
    page.with_name(page.name.replace("question", "answer")).write_text("later\nEND\n")
    other = ASK.model_copy(update={"messages": (*ASK.messages[:1], Message(role=Role.user, text="x = 2"))})
    with pytest.raises(ModelTimeout):
        asked(tmp_path, Told(), other, deadline=1.0)


def test_tools_are_offered_in_words_and_their_results_shown(tmp_path: Path) -> None:
    call = ToolCall(id="c1", name="read", arguments='{"path": "a.py"}')
    ask = ASK.model_copy(
        update={
            "tools": (Tool(name="read", description="Reads a file.", parameters={"type": "object"}),),
            "messages": (
                *ASK.messages,
                Message(role=Role.assistant, text="Let me see.", calls=(call,)),
                Message(role=Role.tool, text="def a(): ...", reply_to="c1"),
            ),
        }
    )
    answer = asked(tmp_path, puts(b'{"calls": [{"name": "read", "arguments": {"path": "b.py"}}]}\nEND\n'), ask)
    assert answer.calls == (ToolCall(id="call-4-0", name="read", arguments='{"path": "b.py"}'),)
    page = next(tmp_path.glob("*.question.md")).read_text()
    for shown in (
        "Your answer before this:\n\nLet me see.\n\nread {",
        "What that gave:\n\ndef a(): ...",
        "Reads a file.",
    ):
        assert shown in page


def test_a_folder_that_cannot_be_had(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be created"):
        ManualModel(tmp_path / "file" / "below", Told())
