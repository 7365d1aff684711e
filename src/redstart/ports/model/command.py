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
from redstart.core.frozen import FrozenValue, clip
from redstart.ports.model.prices import estimate_input, estimate_tokens
from redstart.ports.model.secret_mask import find_secrets, mask

MAX_OUTPUT_BYTES = 8 << 20
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
    envelope = _parse_envelope(printed)
    text = printed if envelope is None else envelope.text
    calls = _convert_calls(envelope.calls, ask) if envelope else ()
    fault = envelope.fault if envelope else None
    if fault is None and not text.strip() and not calls:
        fault = AnswerFault.empty
    parsed = Envelope() if envelope is None else envelope
    return Answer(
        text=text,
        model=parsed.model or name,
        calls=calls,
        usage=parsed.usage or usage or _estimate_usage(ask, text),
        fault=fault,
    )


def _parse_envelope(printed: str) -> Envelope | None:
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
        first_error = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(str(part) for part in first_error["loc"])
        raise ModelGarbled(f"the JSON of the answer is invalid: {location}: {first_error['msg']}") from error


def _convert_calls(calls: tuple[_Called, ...], ask: Ask) -> tuple[ToolCall, ...]:
    """Convert the calls and add missing ids. The ids of a turn differ from those of earlier turns."""
    turn = len(ask.messages)
    return tuple(
        ToolCall(
            id=item.id or f"call-{turn}-{number}",
            name=item.name,
            arguments=item.arguments if isinstance(item.arguments, str) else json.dumps(item.arguments),
        )
        for number, item in enumerate(calls)
    )


def _estimate_usage(ask: Ask, text: str) -> Usage:
    message = Message(role=Role.assistant, text=text)
    return Usage(input_tokens=estimate_input(ask), output_tokens=estimate_tokens([message]), usd=None)


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
            self._argv = tuple(shlex.split(command))
        except ValueError as error:
            raise ConfigError(f"{name!r} cannot be read: {error}", remedy="write it as command:'PROGRAM …'") from error
        if not self._argv or shutil.which(self._argv[0]) is None:
            reason = f"there is no program {self._argv[0]}" if self._argv else "no program is named"
            raise ConfigError(f"{name!r}: {reason}", remedy="write it as command:'PROGRAM …'")
        self._name, self._deadline = name, deadline
        self._environ = dict(os.environ if environ is None else environ)

    async def ask(self, ask: Ask) -> Answer:
        result = await self._run(ask.model_dump_json().encode())
        program = self._argv[0]
        if result.code < 0:
            killed = signal.Signals(-result.code).name
            raise ModelUnreachable(f"{program} was killed by {killed}{self._get_last_error_line(result.err)}")
        if result.code:
            failed = ModelBusy if result.code == TRY_LATER else ModelRefused
            raise failed(
                f"{program} failed with exit code {result.code}{self._get_last_error_line(result.err)}",
                remedy="run it by hand: it reads a question as JSON from its standard input",
            )
        if len(result.out) > MAX_OUTPUT_BYTES:
            raise ModelGarbled(f"{program} printed more than {MAX_OUTPUT_BYTES >> 20} MB")
        try:
            printed = result.out.decode()
        except UnicodeDecodeError as error:
            raise ModelGarbled(f"the output of {program} is not UTF-8 text") from error
        return read_answer(printed, ask, name=self._name)

    async def _run(self, question: bytes) -> _Ended:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environ,
                start_new_session=True,
            )
        except OSError as error:
            raise ModelRefused(f"{self._argv[0]} cannot be started: {error.strerror}") from error
        try:
            async with asyncio.timeout(self._deadline):
                return await _communicate(process, question)
        except TimeoutError as error:
            raise ModelTimeout(
                f"{self._argv[0]} did not answer within {self._deadline:g} seconds",
                remedy="raise models.deadline, the time limit of one call",
            ) from error
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()

    def _get_last_error_line(self, err: bytes) -> str:
        """Return the last line of its error output, with secrets masked."""
        lines = err.decode(errors="replace").strip().splitlines()
        if not lines:
            return ""
        line = mask(lines[-1].strip(), find_secrets(self._environ))
        return f": {clip(line, 300)}"


async def _communicate(process: asyncio.subprocess.Process, question: bytes) -> _Ended:
    assert process.stdin is not None  # noqa: S101  (asked for above)
    assert process.stdout is not None  # noqa: S101
    assert process.stderr is not None  # noqa: S101
    sending = asyncio.ensure_future(_send_question(process.stdin, question))
    complained = asyncio.ensure_future(_read_tail(process.stderr))
    try:
        out = await _read_head(process.stdout, MAX_OUTPUT_BYTES + 1)
        if len(out) > MAX_OUTPUT_BYTES:
            return _Ended(0, out, b"")
        await sending
        err = await complained
        return _Ended(await process.wait(), out, err)
    finally:
        sending.cancel()
        complained.cancel()


async def _send_question(stdin: asyncio.StreamWriter, question: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # The program need not read the whole question.
        stdin.write(question)
        await stdin.drain()
    stdin.close()


async def _read_head(stream: asyncio.StreamReader, limit: int) -> bytes:
    """Read the stream to its end, but at most `limit` bytes."""
    content = bytearray()
    while len(content) < limit and (part := await stream.read(min(1 << 16, limit - len(content)))):
        content += part
    return bytes(content)


async def _read_tail(stream: asyncio.StreamReader) -> bytes:
    """Read the stream to its end and return the last bytes."""
    content = b""
    while part := await stream.read(1 << 16):
        content = (content + part)[-(1 << 13) :]
    return content
