"""The formats of stored data, and the upgrades of older data when it is read.

A version is `major.minor`. A field that older code can ignore raises the minor. Anything that older code would misread
raises the major, and an upgrade from the previous major goes into the table below. Data without a version has major 0.
Data of a newer major is rejected; in data of a newer minor, unknown fields are ignored.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

from pydantic import BaseModel, Field, JsonValue

from redstart.core.errors import NewerFormat
from redstart.core.frozen import FrozenValue

Data = dict[str, Any]
"""The content of a JSON object."""


class StorageFormat(NamedTuple):
    """How data of one kind is stored."""

    kind: str
    version: str
    """The version that this version of Redstart writes."""
    upgrades: Mapping[int, Callable[[Data], Data]]
    """The upgrades from each major to the next. A major without an upgrade needs no change."""
    key: str = "format"
    """The field that holds the version."""
    grows: bool = False
    """Whether new fields do not raise the version."""

    def upgrade(self, data: Data, stored_version: str | int) -> Data:
        """Upgrade data of the stored version to the current major. Raises `NewerFormat` for data of a newer major."""
        (major, _), (current_major, _) = parse_version(stored_version), parse_version(self.version)
        if major > current_major:
            subject = f"run {data['run_id']}" if "run_id" in data else f"this {self.kind}"
            raise NewerFormat(
                f"{subject} was stored by a newer version of redstart: "
                f"its format is {stored_version}, and this version reads up to {current_major}"
            )
        for older in range(major, current_major):
            data = self.upgrades.get(older, dict)(data)
        return data


def parse_version(text: str | int) -> tuple[int, int]:
    """Parse major and minor. A version in another form counts as newer than all known ones."""
    major, _, minor = str(text).partition(".")
    if not (major.isdecimal() and (minor or "0").isdecimal()):
        return sys.maxsize, 0
    return int(major), int(minor or 0)


def to_current_status(status: str, result: str | None) -> str:
    """Convert a stored status to its current name."""
    if (status, result) == ("paused", "needs_human"):
        return "needs_input"
    return "finished" if status == "ended" else status


def _rename_iterations(data: Data) -> Data:
    """Rename `iterations` to `attempts` in limits."""

    def rename_keys(value: Any, *, is_limits: bool = False) -> Any:
        if isinstance(value, list):
            return [rename_keys(item) for item in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        return {
            "attempts" if is_limits and key == "iterations" else key: rename_keys(item, is_limits=key == "limits")
            for key, item in cast("Data", value).items()
        }

    return rename_keys(data)


def _rename_status(data: Data) -> Data:
    return data | ({"status": to_current_status(data["status"], data.get("result"))} if "status" in data else {})


def _name_problems(data: Data) -> Data:
    """Add the fields for why there is no answer or edit. Version 0 stored the reasons only as texts."""
    readers = {
        "patch": (with_patch_problem, "fault"),
        "plan": (with_over_budget, "fault"),
        "reproduce": (with_over_budget, "remedy"),
    }
    parts: Data = dict(data.get("now", {}))
    for step, (reader, field) in readers.items():
        parts |= {step: reader(parts[step], field)} if step in parts else {}
    history = [with_patch_problem(attempt, "outcome") for attempt in data.get("history", [])]
    return data | {"now": parts, "history": history}


def _upgrade_run(data: Data) -> Data:
    return _name_problems(_rename_status(_rename_iterations(data)))


STATE = StorageFormat("run", "1.0", {0: _upgrade_run})
SPEC = StorageFormat("spec", "1.0", {0: _rename_iterations})
RECORD = StorageFormat("journal record", "1.0", {})
EVALUATION = StorageFormat("evaluation", "1.0", {0: _rename_iterations})
EVENT = StorageFormat("event", "1", {}, key="v", grows=True)
OPTIONS = StorageFormat("set of options", "0", {}, grows=True)
CASSETTE = StorageFormat("recording", "3", {}, key="v")
"""Version 1 holds only answers, 2 also the questions, 3 also the version of Redstart that recorded them."""


class StoredValue(FrozenValue):
    """A noun that other versions of Redstart read. It has a version field, unless its format only grows."""

    stored_as: ClassVar[StorageFormat]


class RunValue(StoredValue):
    """A noun about a whole run. It preserves the fields of a newer minor for a version that knows them."""

    unread: dict[str, JsonValue] = Field(default={}, exclude_if=lambda fields: not fields)


N = TypeVar("N", bound=BaseModel)


def read(noun: type[N], body: str | bytes) -> N:
    """Read stored data as the current noun.

    Raises `NewerFormat` for data of a newer major, and `ValidationError` for data that does not fit the noun.
    """
    try:
        data = json.loads(body)
    except ValueError:
        data = None
    if not (isinstance(data, dict) and issubclass(noun, StoredValue)):
        return noun.model_validate_json(body)
    upgraded, is_open = _upgrade(noun, cast("Data", data))
    return noun.model_validate_json(json.dumps(upgraded), extra="ignore" if is_open else None)


def _upgrade(noun: type[StoredValue], data: Data, *, is_open: bool = False) -> tuple[Data, bool]:
    """Upgrade data to the current major, and return whether it may hold unknown fields. With `is_open`, it always
    may."""
    stored, fields = noun.stored_as, noun.model_fields
    stored_version = data.get(stored.key, 0)
    data = stored.upgrade(data, stored_version)
    is_newer = parse_version(stored_version) > parse_version(stored.version)
    is_open = is_open or stored.grows or is_newer
    if stored.key in fields:
        data = data | {stored.key: fields[stored.key].default}
    if issubclass(noun, RunValue):
        data = _carry_along(data, frozenset(fields), is_newer=is_newer)
    for name, field in fields.items():
        part = field.annotation
        if isinstance(part, type) and issubclass(part, StoredValue) and isinstance(data.get(name), dict):
            data[name], is_open = _upgrade(part, data[name], is_open=is_open)
    return data, is_open


def _carry_along(data: Data, known_fields: frozenset[str], *, is_newer: bool) -> Data:
    """Move unknown fields to `unread_fields`, and known fields of `unread_fields` to their places."""
    unread_fields: Data = data.pop("unread", {})
    unread_fields |= {name: data.pop(name) for name in [*data] if is_newer and name not in known_fields}
    restored_fields = {name: unread_fields.pop(name) for name in [*unread_fields] if name in known_fields}
    return restored_fields | data | ({"unread": unread_fields} if unread_fields else {})


@cache
def get_current_version() -> str:
    """Return the version of the running Redstart."""
    return version("redstart")


def describe_recorded_version(recorded_by: str) -> str:
    """Describe the version that recorded something."""
    return f"version {recorded_by}" if recorded_by else "an earlier version"


OVER_BUDGET = "this call is over budget"
UNCHANGED = "back as it was: something in it must change to make the failing test pass"
BUDGET_PROBLEM = "budget"


def with_patch_problem(document: object, field: str) -> object:
    """Add the `PatchProblem` that the text in `field` of a version 0.1 document ends with. Other documents stay."""
    text = _read_text_field(document, "problem", field)
    problem = "over_budget" if text.endswith(OVER_BUDGET) else "unchanged" if text.endswith(UNCHANGED) else ""
    return _with_field(document, "problem", problem) if problem else document


def with_over_budget(document: object, field: str) -> object:
    """Add `over_budget` for a question other than the one for a patch that was not asked because of its cost."""
    return (
        _with_field(document, "over_budget", True)
        if _read_text_field(document, "over_budget", field) == BUDGET_PROBLEM
        else document
    )


def _read_text_field(document: object, absent_field: str, field: str) -> str:
    if not isinstance(document, dict) or absent_field in document:
        return ""
    return str(cast("dict[str, object]", document).get(field, ""))


def _with_field(document: object, field: str, value: object) -> dict[str, object]:
    return {**cast("dict[str, object]", document), field: value}
