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
        if match := re.search(r"question:\n +(.+)\n.*into:\n +(.+)\n", text):
            self._act(Path(match[1]).read_text(), Path(match[2]))


def ask_manually(
    folder: Path, console: Told, ask: Ask = ASK, *, deadline: float = 120.0, quiet: float = 15.0
) -> Answer:
    return asyncio.run(ManualModel(folder, console, deadline=deadline, quiet_seconds=quiet).ask(ask))


def create_console(data: bytes) -> Told:
    return Told(lambda _question, answer: answer.write_bytes(data) and None)


class TestManual(ModelContract):
    costs = False

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @contextmanager
    def open_model(self, script: Script) -> Iterator[Model]:
        def write_answer(question: str, answer: Path) -> None:
            (scripted_answer,) = (
                scripted_answer for key, scripted_answer in script.items() if f"\n---\n\n{key}\n" in question
            )
            if scripted_answer is not None:
                envelope = scripted_answer.model_dump_json(include={"text", "fault", "calls"})
                answer.write_bytes(
                    f"{envelope if scripted_answer.fault or scripted_answer.calls else scripted_answer.text}\n"
                    f"END\n".encode()
                )

        yield ManualModel(
            self.folder, Told(write_answer), deadline=2.0 if None in script.values() else 60.0, quiet_seconds=60.0
        )


def test_question_is_written_as_a_page_and_instructions_are_printed(tmp_path: Path) -> None:
    console = create_console(b"an edit\nEND\n")
    answer = ask_manually(tmp_path / "new" / "folder", console)
    assert (answer.text, answer.model, answer.usage.estimated_tokens > 5) == ("an edit", "manual", True)
    assert answer.usage.model_copy(update={"estimated_tokens": 0}) == Usage(), "no limit applies to an estimate"
    (page,) = (tmp_path / "new" / "folder").glob("*.question.md")
    assert page.name.startswith("1-patch-0-")
    assert "You repair code.\n\n---\n\nx = 1\n" in page.read_text()
    assert page.name.replace("question", "answer") in page.read_text().splitlines()[0]
    output = " ".join(console.lines)
    assert all(phrase in output for phrase in ("END", "15 seconds", "Ctrl-C"))
    assert console.lines[-1] == "read the answer: 1 line"


@pytest.mark.parametrize(
    ("answer_bytes", "text"),
    [
        (b"a\n\nb\nEND", "a\n\nb"),
        (b"a\r\nb\r\n  END \r\n\n\n", "a\r\nb"),
        (b"\xef\xbb\xbfa\nEND\n", "a"),
        (b"END of it\nand more\nEND\n", "END of it\nand more"),
        ("木 – “x”\nEND\n".encode(), "木 – “x”"),
    ],
)
def test_end_line_completes_an_answer(answer_bytes: bytes, text: str, tmp_path: Path) -> None:
    assert ask_manually(tmp_path, create_console(answer_bytes)).text == text


def test_answer_without_an_end_line_is_taken_once_it_stops_changing(tmp_path: Path) -> None:
    assert ask_manually(tmp_path, create_console(b"an edit\n"), quiet=0.5).text == "an edit\n"


@pytest.mark.parametrize("answer_bytes", [b"half an edit\n", b"  \n", b""])
def test_incomplete_answer_is_waited_for(answer_bytes: bytes, tmp_path: Path) -> None:
    with pytest.raises(ModelTimeout, match="no answer appeared in"):
        ask_manually(tmp_path, create_console(answer_bytes), deadline=1.5, quiet=60.0)


def test_end_line_alone_is_an_empty_answer(tmp_path: Path) -> None:
    assert ask_manually(tmp_path, create_console(b"END\n")).fault is AnswerFault.empty


@pytest.mark.parametrize(
    ("answer_bytes", "complaint"),
    [(b"\xff\xfea\x00\nEND\n", "not UTF-8"), (b'{"text": "cut\nEND\n', "cut off"), (None, "cannot be read")],
)
def test_unusable_answer_is_reported_once_and_another_is_awaited(
    answer_bytes: bytes | None, complaint: str, tmp_path: Path
) -> None:
    def write_answer(_question: str, answer: Path) -> None:
        answer.mkdir() if answer_bytes is None else answer.write_bytes(answer_bytes)

    class Mends(Told):
        def __call__(self, text: str) -> None:
            super().__call__(text)
            if "waiting for a new answer" in text:
                (answer,) = tmp_path.glob("*.answer.md")
                answer.rmdir() if answer.is_dir() else answer.unlink()
                answer.write_text("mended\nEND\n")

    console = Mends(write_answer)
    assert ask_manually(tmp_path, console).text == "mended"
    assert [complaint in line for line in console.lines].count(True) == 1


def test_answer_is_used_only_once(tmp_path: Path) -> None:
    ask_manually(tmp_path, create_console(b"first\nEND\n"))
    with pytest.raises(ModelTimeout):
        ask_manually(tmp_path, Told(), deadline=1.0)
    assert [path.read_text() for path in tmp_path.glob("*.answered.md")] == ["first\nEND\n"]


def test_answer_written_during_an_interruption_is_read_on_resume(tmp_path: Path) -> None:
    with pytest.raises(ModelTimeout):
        ask_manually(tmp_path, Told(), deadline=0.1)
    (page,) = tmp_path.glob("*.question.md")
    page.with_name(page.name.replace("question", "answer")).write_text("later\nEND\n")
    assert ask_manually(tmp_path, Told()).text == "later"


def test_different_question_does_not_get_the_first_answer(tmp_path: Path) -> None:
    with pytest.raises(ModelTimeout):
        ask_manually(tmp_path, Told(), deadline=0.1)
    (page,) = tmp_path.glob("*.question.md")
    page.with_name(page.name.replace("question", "answer")).write_text("later\nEND\n")
    other_ask = ASK.model_copy(update={"messages": (*ASK.messages[:1], Message(role=Role.user, text="x = 2"))})
    with pytest.raises(ModelTimeout):
        ask_manually(tmp_path, Told(), other_ask, deadline=1.0)


def test_tools_are_offered_as_text_and_their_results_shown(tmp_path: Path) -> None:
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
    console = create_console(b'{"calls": [{"name": "read", "arguments": {"path": "b.py"}}]}\nEND\n')
    answer = ask_manually(tmp_path, console, ask)
    assert console.lines[-1] == "read the answer: 1 tool call"
    assert answer.calls == (ToolCall(id="call-4-0", name="read", arguments='{"path": "b.py"}'),)
    page = next(tmp_path.glob("*.question.md")).read_text()
    for excerpt in (
        "Your answer before this:\n\nLet me see.\n\nread {",
        "What that gave:\n\ndef a(): ...",
        "Reads a file.",
    ):
        assert excerpt in page


def test_unusable_directory_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be created"):
        ManualModel(tmp_path / "file" / "below", Told())
