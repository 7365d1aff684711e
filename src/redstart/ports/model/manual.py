"""A model that is operated by hand: the question is written to a file, the answer is read from a file next to it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from redstart.core.chat import Answer, Ask, Message, Role, Usage
from redstart.core.errors import ConfigError, ModelGarbled, ModelTimeout
from redstart.core.frozen import format_count
from redstart.ports.model.command import read_answer
from redstart.ports.model.prices import estimate_input, estimate_tokens
from redstart.ports.model.text_tools import format_tools

LAST_LINE = "END"
DAY = 24 * 60 * 60.0
QUIET_SECONDS = 10.0
"""The seconds that an answer without its last line must stay unchanged before it is read."""
POLL = 0.2

_TURNS = {
    Role.system: "",
    Role.user: "",
    Role.assistant: "Your answer before this:",
    Role.tool: "What that gave:",
}


class _Files(NamedTuple):
    question: Path
    answer: Path
    archived_answer: Path


class ManualModel:
    """For people who may only use a chat in a browser: they copy question and answer between it and two files.

    The answer counts once its last line is `END`, or once it has not changed for `quiet` seconds. Until it is ready and
    readable, the model waits; `tell` reports problems. After reading, the file is renamed, so that it never answers a
    later question. The same question, asked again by an interrupted run, has the same files, and an answer that was
    written in between is read immediately. Its usage is an estimate, to which no limit applies.

    Raises `ConfigError` if `folder` cannot be created or written to, and `ModelTimeout` after `deadline` seconds.
    """

    def __init__(
        self,
        folder: Path,
        notify: Callable[[str], None],
        *,
        name: str = "manual",
        deadline: float = DAY,
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        self._folder, self._notify, self._name = folder.resolve(), notify, name
        self._deadline, self._quiet_seconds = deadline, quiet_seconds
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{name}: the directory {folder} cannot be created: {error.strerror}") from error

    async def ask(self, ask: Ask) -> Answer:
        files = self._get_files(ask)
        try:
            _write(files.question, _format_page(ask, files.answer.name))
        except OSError as error:
            raise ConfigError(f"{self._name}: {files.question} cannot be written: {error.strerror}") from error
        self._notify(
            "give a model this question:\n"
            f"  {files.question}\n"
            "and put its answer into:\n"
            f"  {files.answer}\n"
            f"The answer is read when its last line is {LAST_LINE},\n"
            f"or when it has not changed for {self._quiet_seconds:g} seconds.\n"
            "Ctrl-C stops the run; redstart resume continues it."
        )
        answer = await self._await_answer(ask, files)
        files.answer.replace(files.archived_answer)
        lines = format_count(len(answer.text.splitlines()), "line")
        self._notify(f"read the answer: {format_count(len(answer.calls), 'tool call') if answer.calls else lines}")
        return answer

    def _get_files(self, ask: Ask) -> _Files:
        """Return the files of a question, named by its position in the run and its text, so that none are shared.

        The name counts the questions of the step, not its runs of tests between them.
        """
        step = ask.site.rpartition("/")[0].replace("/", "-")
        key = hashlib.sha256(ask.model_dump_json().encode()).hexdigest()[:8]
        stem = f"{step}-{ask.number}-{key}" if step else f"{ask.question}-{key}"
        return _Files(*(self._folder / f"{stem}.{kind}.md" for kind in ("question", "answer", "answered")))

    async def _await_answer(self, ask: Ask, files: _Files) -> Answer:
        watch = _Watch(files.answer, self._quiet_seconds)
        deadline = time.monotonic() + self._deadline
        last_problem = ""
        while time.monotonic() < deadline:
            text, problem = watch.poll()
            if text is not None:
                try:
                    return read_answer(text, ask, name=self._name, usage=_estimate_usage(ask, text))
                except ModelGarbled as error:
                    problem = str(error)
            if problem and problem != last_problem:
                self._notify(f"{files.answer.name}: {problem}; waiting for a new answer")
            last_problem = problem
            await asyncio.sleep(POLL)
        raise ModelTimeout(
            f"no answer appeared in {files.answer} within {self._deadline / 3600:g} hours",
            remedy="write the answer to that file and resume the run",
        )


class _Watch:
    """Polls the file of an answer until it is complete."""

    def __init__(self, path: Path, quiet_seconds: float) -> None:
        self._path, self._quiet_seconds = path, quiet_seconds
        self._last_data, self._changed_at = b"", time.monotonic()

    def poll(self) -> tuple[str | None, str]:
        """Return the text if it is complete, else None and the problem, if there is one.

        A file that has just changed is never complete: its writer may not be done.
        """
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            data = b""
        except OSError as error:
            return None, f"the file cannot be read: {error.strerror}"
        if data != self._last_data:
            self._last_data, self._changed_at = data, time.monotonic()
            return None, ""
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None, "the file is not UTF-8 text"
        body, _, last_line = text.rstrip().rpartition("\n")
        if last_line.strip() == LAST_LINE:
            return body.removesuffix("\r"), ""
        ready = text.strip() and time.monotonic() - self._changed_at >= self._quiet_seconds
        return (text, "") if ready else (None, "")


def _estimate_usage(ask: Ask, text: str) -> Usage:
    """Estimate the tokens of the question and of its answer. What they cost is unknown, and no limit applies."""
    return Usage(estimated_tokens=estimate_input(ask) + estimate_tokens([Message(role=Role.assistant, text=text)]))


def _write(path: Path, text: str) -> None:
    """Write the file atomically."""
    draft = path.with_suffix(".part")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def _format_page(ask: Ask, answer: str) -> str:
    """Format the whole question as Markdown, ready to paste into a chat."""
    head = (
        f"<!-- A question of redstart ({ask.question}). Give all of this to a model, and put its answer, nothing else, "
        f"into {answer}, with {LAST_LINE} on a last line of its own. -->"
    )
    return "\n\n".join([head, *(_turn(message) for message in ask.messages), *_offer(ask)]) + "\n"


def _turn(message: Message) -> str:
    calls = [f"{call.name} {call.arguments}" for call in message.calls]
    parts = [_TURNS[message.role], message.text.strip(), *calls]
    return "---\n\n" + "\n\n".join(part for part in parts if part)


def _offer(ask: Ask) -> list[str]:
    if not ask.tools:
        return []
    form = json.dumps({"calls": [{"name": ask.tools[0].name, "arguments": {}}]})
    instruction = f"Instead of answering you may call these; then answer with nothing but JSON such as `{form}`:"
    return ["---", instruction, format_tools(ask.tools)]
