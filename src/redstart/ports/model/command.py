"""A model behind the user's own program: it reads the question as JSON and prints the answer."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple, cast

from pydantic import ValidationError

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, ToolCall, Usage
from redstart.core.errors import ConfigError, ModelBusy, ModelGarbled, ModelRefused, ModelTimeout, ModelUnreachable
from redstart.core.noun import FrozenValue, clip
from redstart.ports.model.mask import mask, secrets_of
from redstart.ports.model.prices import estimate_input, estimate_tokens

LARGEST = 8 << 20
"""The most bytes that a program may print, about a thousand times the size of an answer."""
TRY_LATER = 75
"""The exit code of a temporary failure: EX_TEMPFAIL in sysexits.h."""

_CUT_ENVELOPE = re.compile(r'\{\s*"(text|calls|fault|usage|model)"\s*:')


class _Called(FrozenValue):
    name: str
    arguments: dict[str, object] | str = {}
    """The arguments as JSON, or as the model wrote them."""
    id: str = ""


class Envelope(FrozenValue):
    """An answer as JSON. Only `text` or `calls` is required. Any other output is the text of the answer."""

    text: str = ""
    calls: tuple[_Called, ...] = ()
    model: str = ""
    fault: AnswerFault | None = None
    usage: Usage | None = None


def read_answer(printed: str, ask: Ask, *, name: str, usage: Usage | None = None) -> Answer:
    """Parse the answer that a program printed or a person wrote: an `Envelope`, else plain text.

    `usage` applies if the envelope contains none; None means an estimate without a price. Raises `ModelGarbled` if the
    envelope is truncated or invalid.
    """
    envelope = _envelope(printed)
    text = printed if envelope is None else envelope.text
    calls = _calls(envelope.calls, ask) if envelope else ()
    fault = envelope.fault if envelope else None
    if fault is None and not text.strip() and not calls:
        fault = AnswerFault.empty
    said = Envelope() if envelope is None else envelope
    return Answer(
        text=text,
        model=said.model or name,
        calls=calls,
        usage=said.usage or usage or _estimated(ask, text),
        fault=fault,
    )


def _envelope(printed: str) -> Envelope | None:
    """Parse an envelope. Returns None for plain text, including JSON with other fields: some answers are JSON."""
    try:
        value = json.loads(printed)
    except (ValueError, RecursionError):
        if _CUT_ENVELOPE.match(printed.lstrip()):
            raise ModelGarbled("the answer starts as JSON but is not valid JSON: it may have been cut off") from None
        return None
    fields = set(cast("dict[str, object]", value)) if isinstance(value, dict) else set[str]()
    if not fields & {"text", "calls", "fault"} or fields - set(Envelope.model_fields):
        return None
    try:
        return Envelope.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ModelGarbled(f"the JSON of the answer is invalid: {where}: {first['msg']}") from error


def _calls(called: tuple[_Called, ...], ask: Ask) -> tuple[ToolCall, ...]:
    """Convert the calls and add missing ids. The ids of a turn differ from those of earlier turns."""
    turn = len(ask.messages)
    return tuple(
        ToolCall(
            id=item.id or f"call-{turn}-{number}",
            name=item.name,
            arguments=item.arguments if isinstance(item.arguments, str) else json.dumps(item.arguments),
        )
        for number, item in enumerate(called)
    )


def _estimated(ask: Ask, text: str) -> Usage:
    said = Message(role=Role.assistant, text=text)
    return Usage(input_tokens=estimate_input(ask), output_tokens=estimate_tokens([said]), usd=None)


class _Ended(NamedTuple):
    code: int
    out: bytes
    err: bytes


class Command:
    """Starts the program once for each question, without a shell unless the user's command names one.

    The program belongs to the user, like a provider's client. It gets the user's environment, because their keys are
    in it. It reads the question (`Ask` as JSON) from its standard input and prints an `Envelope` or plain text.

    Raises `ModelRefused` if it cannot be started or fails, `ModelBusy` if it fails with `TRY_LATER`,
    `ModelUnreachable` if it was killed, `ModelTimeout` if it takes longer than `deadline` seconds (then it and all its
    child processes are killed) and `ModelGarbled` if its output is not an answer.
    """

    def __init__(self, command: str, *, name: str, deadline: float, environ: Mapping[str, str] | None = None) -> None:
        """Set up the program. `command` is written as in a shell. Raises `ConfigError` if it names no program."""
        try:
            self._words = tuple(shlex.split(command))
        except ValueError as error:
            raise ConfigError(f"{name!r} cannot be read: {error}", remedy="write it as command:'PROGRAM …'") from error
        if not self._words or shutil.which(self._words[0]) is None:
            said = f"there is no program {self._words[0]}" if self._words else "no program is named"
            raise ConfigError(f"{name!r}: {said}", remedy="write it as command:'PROGRAM …'")
        self._name, self._deadline = name, deadline
        self._environ = dict(os.environ if environ is None else environ)

    async def ask(self, ask: Ask) -> Answer:
        ended = await self._run(ask.model_dump_json().encode())
        program = self._words[0]
        if ended.code < 0:
            killed = signal.Signals(-ended.code).name
            raise ModelUnreachable(f"{program} was killed by {killed}{self._last_words(ended.err)}")
        if ended.code:
            failed = ModelBusy if ended.code == TRY_LATER else ModelRefused
            raise failed(
                f"{program} failed with exit code {ended.code}{self._last_words(ended.err)}",
                remedy="run it by hand: it reads a question as JSON from its standard input",
            )
        if len(ended.out) > LARGEST:
            raise ModelGarbled(f"{program} printed more than {LARGEST >> 20} MB")
        try:
            printed = ended.out.decode()
        except UnicodeDecodeError as error:
            raise ModelGarbled(f"the output of {program} is not UTF-8 text") from error
        return read_answer(printed, ask, name=self._name)

    async def _run(self, question: bytes) -> _Ended:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environ,
                start_new_session=True,
            )
        except OSError as error:
            raise ModelRefused(f"{self._words[0]} cannot be started: {error.strerror}") from error
        try:
            async with asyncio.timeout(self._deadline):
                return await _talk(process, question)
        except TimeoutError as error:
            raise ModelTimeout(
                f"{self._words[0]} did not answer within {self._deadline:g} seconds",
                remedy="raise models.deadline, the time limit of one call",
            ) from error
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()

    def _last_words(self, err: bytes) -> str:
        """Return the last line of its error output, with secrets masked."""
        lines = err.decode(errors="replace").strip().splitlines()
        if not lines:
            return ""
        said = mask(lines[-1].strip(), secrets_of(self._environ))
        return f": {clip(said, 300)}"


async def _talk(process: asyncio.subprocess.Process, question: bytes) -> _Ended:
    assert process.stdin is not None  # noqa: S101  (asked for above)
    assert process.stdout is not None  # noqa: S101
    assert process.stderr is not None  # noqa: S101
    told = asyncio.ensure_future(_tell(process.stdin, question))
    complained = asyncio.ensure_future(_tail(process.stderr))
    try:
        out = await _head(process.stdout, LARGEST + 1)
        if len(out) > LARGEST:
            return _Ended(0, out, b"")
        await told
        err = await complained
        return _Ended(await process.wait(), out, err)
    finally:
        told.cancel()
        complained.cancel()


async def _tell(stdin: asyncio.StreamWriter, question: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # The program need not read the whole question.
        stdin.write(question)
        await stdin.drain()
    stdin.close()


async def _head(stream: asyncio.StreamReader, limit: int) -> bytes:
    """Read the stream to its end, but at most `limit` bytes."""
    kept = bytearray()
    while len(kept) < limit and (part := await stream.read(min(1 << 16, limit - len(kept)))):
        kept += part
    return bytes(kept)


async def _tail(stream: asyncio.StreamReader) -> bytes:
    """Read the stream to its end and return the last bytes."""
    kept = b""
    while part := await stream.read(1 << 16):
        kept = (kept + part)[-(1 << 13) :]
    return kept
