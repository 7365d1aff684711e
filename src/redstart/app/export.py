"""Export a run's model calls as a cassette: a file to read, to edit, and to run against instead of a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from redstart.app.wire import AppContext
from redstart.core.chat import Answer, Ask, Message
from redstart.core.errors import BlobMissing, ConfigError
from redstart.core.run import Step
from redstart.engines.journal import KeptAnswer
from redstart.ports.model.replay import Cassette
from redstart.ports.model.secret_mask import find_secrets, mask
from redstart.ports.store.port.blobs import Blobs
from redstart.ports.store.port.journal import JournalRecord


class ExportedCassette(NamedTuple):
    """The result of an export. The second field is the run that this one was forked from; its calls are not
    included."""

    calls: int
    begins_late: str


async def export_cassette(app: AppContext, run_id: str, to: Path) -> ExportedCassette:
    """Write every model call of the run in order, with its messages and its cost.

    Mask secrets, as they were masked for the model: the journal stores the messages of a step before masking.
    Raises `ConfigError` if the run asked no model, or if the file cannot be written or exists and is not a cassette.
    """
    if to.exists():
        _require_cassette(to)
    records = [item for item in await app.adapters.journal.list_records(run_id) if item.kind == "model"]
    if not records:
        raise ConfigError(f"run {run_id} called no model, so there is nothing to export")
    secrets = find_secrets(os.environ)
    try:
        answers = [_answer(record, app.adapters.blobs) for record in records]
        message_lists = [_read_messages(record, app.adapters.blobs, secrets) for record in records]
    except BlobMissing as error:
        raise ConfigError(
            f"run {run_id} cannot be exported: some of its messages or answers no longer exist",
            remedy="they were deleted together with a fix card that they quote (redstart memory forget)",
        ) from error
    # The model that wrote the edits: its profile decides how a step asks.
    writer = next((n for n, record in enumerate(records) if record.call.step == Step.patch.value), 0)
    cassette = Cassette(model=answers[writer].model, recorded_by=records[writer].recorded_by)
    for record, answer, messages in zip(records, answers, message_lists, strict=True):
        call = record.call
        site = f"{call.attempt}/{call.step}/{call.ordinal}"
        cassette = cassette.with_call(site, answer, messages)
    try:
        cassette.save(to)
    except OSError as error:
        raise ConfigError(f"{to} cannot be written: {error.strerror}") from error
    state = await app.adapters.store.load(run_id)
    return ExportedCassette(len(records), state.spec.parent)


def _require_cassette(path: Path) -> None:
    try:
        Cassette.load(path)
    except ConfigError as error:
        raise ConfigError(
            f"{path} already exists and is not a cassette", remedy="choose another file, or remove this one"
        ) from error


def _read_messages(record: JournalRecord, blobs: Blobs, secrets: Mapping[str, str]) -> list[Message]:
    messages = Ask.model_validate_json(blobs.get(record.request)).messages
    return [_mask_message(message, secrets) for message in messages]


def _mask_message(message: Message, secrets: Mapping[str, str]) -> Message:
    calls = tuple(call.model_copy(update={"arguments": mask(call.arguments, secrets)}) for call in message.calls)
    return message.model_copy(update={"text": mask(message.text, secrets), "calls": calls})


def _answer(record: JournalRecord, blobs: Blobs) -> Answer:
    stored_answer = KeptAnswer.from_record(record)
    return stored_answer.answer.model_copy(update={"text": blobs.get(stored_answer.text).decode()})
