"""Coerce a model's output to the requested fields: other spellings of names, a text in place of a list."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Union, cast, get_args, get_origin

from pydantic import BaseModel

WRAPPERS = frozenset({"arguments", "parameters", "input", "answer", "response", "result", "output", "json", "data"})
_TEXT_KEYS = frozenset({"text", "description", "criterion", "step", "title", "name", "value"})
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DEEPEST = 3


def rename_fields(value: Mapping[str, object], shape: type[BaseModel]) -> dict[str, object]:
    """Rename the fields of `value` to the spelling of `shape` if the words match. Other fields stay."""
    renamed: dict[str, object] = {}
    for key, item in value.items():
        normalized = normalize_name(key)
        renamed.setdefault(normalized if normalized in shape.model_fields else key, item)
    return renamed


def normalize_name(key: str) -> str:
    return re.sub(r"[\W_]+", "_", _CAMEL.sub("_", key.strip())).strip("_").casefold()


def unwrap(value: Mapping[str, object], shape: type[BaseModel], depth: int = 0) -> dict[str, object] | None:
    """Find the object in `value` with fields of `shape`: `value` itself, or a wrapped one as in `{"answer": {...}}`.

    None if there is no such object, or if more than one inner object has such fields.
    """
    fields = rename_fields(value, shape)
    if any(name in shape.model_fields for name in fields):
        return fields
    if depth >= _DEEPEST:
        return None
    wrapped = [item for key, item in value.items() if len(value) == 1 or normalize_name(key) in WRAPPERS]
    candidates = [
        unwrapped for item in wrapped if (unwrapped := unwrap(_as_object(item), shape, depth + 1)) is not None
    ]
    return candidates[0] if len(candidates) == 1 else None


def coerce_fields(
    value: Mapping[str, object], shape: type[BaseModel], *, is_complete: bool = True
) -> dict[str, object]:
    """Coerce each field of `value` to the type that `shape` declares, if nothing is lost.

    If `is_complete` is false, a list may be only the start of one, so it does not become a text.
    """
    coerced: dict[str, object] = {}
    for name, item in rename_fields(value, shape).items():
        field = shape.model_fields.get(name)
        if field is None:
            continue
        if item is None and not field.is_required():
            continue
        is_fragment = not is_complete and field.annotation is str and not isinstance(item, str)
        coerced[name] = item if is_fragment else _coerce_value(item, field.annotation)
    return coerced


def find_unknown_fields(value: Mapping[str, object], shape: type[BaseModel]) -> list[str]:
    """List the unknown fields that must not be ignored, because their value may belong to a field of `shape`.

    These are lists and objects if a field of `shape` is missing or empty, and names of inner objects' fields.
    """
    full = all(value.get(name) for name in shape.model_fields)
    inner_names = {name for field in shape.model_fields.values() for name in _list_model_fields(field.annotation)}
    return [
        key
        for key, item in value.items()
        if key not in shape.model_fields
        and item
        and (normalize_name(key) in inner_names or (not full and isinstance(item, list | dict)))
    ]


def _list_model_fields(kind: object) -> set[str]:
    """List the field names of the models in an annotation."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return set(kind.model_fields)
    return {name for arg in get_args(kind) for name in _list_model_fields(arg)}


def _coerce_value(value: object, kind: object) -> object:
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        alternatives = [item for item in inside if item is not NoneType]
        return value if value is None or len(alternatives) != 1 else _coerce_value(value, alternatives[0])
    if origin in (list, tuple):
        items = _as_list(value)
        if len(items) == 1 and isinstance(items[0], list):
            items = cast("list[object]", items[0])
        return [cast("object", item) if isinstance(item, list) else _coerce_value(item, inside[0]) for item in items]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _as_model(value, kind)
    return _as_text(value) if kind is str else value


def _as_list(value: object) -> list[object]:
    if isinstance(value, list):
        return cast("list[object]", value)
    decoded = _decode_json(value)
    if isinstance(decoded, list):
        return cast("list[object]", decoded)
    return [] if value in (None, "") else [value]


def _as_model(value: object, kind: type[BaseModel]) -> object:
    """Return the value as an object. A text becomes the only required field of an object."""
    required = [name for name, field in kind.model_fields.items() if field.is_required()]
    if isinstance(value, str) and len(required) == 1 and not _as_object(value):
        return {required[0]: value}
    fields = _as_object(value)
    return coerce_fields(fields, kind) if fields else value


def _as_text(value: object) -> object:
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, list):
        items = cast("list[object]", value)
        return "\n".join(map(str, items)) if items and all(isinstance(item, str) for item in items) else items
    if isinstance(value, dict):
        pairs = list(cast("dict[str, object]", value).items())
        if len(pairs) == 1 and normalize_name(pairs[0][0]) in _TEXT_KEYS and isinstance(pairs[0][1], str):
            return pairs[0][1]
    return cast("object", value)


def _as_object(value: object) -> dict[str, object]:
    decoded = _decode_json(value) if isinstance(value, str) else value
    return cast("dict[str, object]", decoded) if isinstance(decoded, dict) else {}


def _decode_json(value: object) -> object:
    """Decode JSON text. None if the value is not a text or not a JSON object or list."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return None
