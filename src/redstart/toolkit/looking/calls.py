"""The tools that a model may call, and the parser of its calls: native ones, or calls written into its text."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

from redstart.core.chat import Tool, ToolCall

LONGEST = 50_000
"""The maximum length of an answer; a longer one contains no call."""
LONGEST_CALL = 20_000

Arguments = Mapping[str, object]


def _tool(name: str, description: str, required: tuple[str, ...] = (), /, **properties: tuple[str, str]) -> Tool:
    shapes = {key: {"type": kind, "description": words} for key, (kind, words) in properties.items()}
    parameters: dict[str, object] = {"type": "object", "properties": shapes, "required": list(required)}
    return Tool(name=name, description=description, parameters=parameters)


LOOKS = (
    _tool(
        "read",
        "Read lines of a file of the project, or the definition of a symbol.",
        path=("string", "the file, from the project's root"),
        start=("integer", "first line, from 1"),
        end=("integer", "last line"),
        symbol=("string", "instead of lines: a function, class or Class.method; the path may then be left out"),
    ),
    _tool(
        "search",
        "Find the lines of the project that hold a text, or match a regular expression.",
        ("text",),
        text=("string", "what to look for"),
        regex=("boolean", "whether the text is a regular expression, matched line by line"),
        ignore_case=("boolean", "whether case does not matter"),
        path=("string", "only in this folder or file"),
    ),
    _tool(
        "outline",
        "List what a file defines, or the files of a folder with what they define.",
        path=("string", "the file or folder; leave it out for the project's root"),
    ),
    _tool("references", "List where a name is defined and used.", ("name",), name=("string", "an identifier")),
    _tool(
        "history",
        "List what earlier attempts of this run changed and how they ended; with a path, the last commits that "
        "changed that file.",
        path=("string", "the file"),
    ),
)
NAMES = frozenset(tool.name for tool in LOOKS)

_PARAMETERS = {tool.name: frozenset(cast("dict[str, object]", tool.parameters["properties"])) for tool in LOOKS}
_WHICH = ("name", "tool", "tool_name", "function", "function_name", "action", "look")
_WITH = ("arguments", "args", "parameters", "params", "input", "action_input")
_OPENS = re.compile(r"[ \t]*(`{3,}|~{3,})[^`\n]*\n?")
_TAGS = re.compile(
    r"<(?P<tag>tool_call|tool_calls|function_call|tool|look)>(?P<body>.*?)(?:</(?P=tag)>|\Z)", re.DOTALL | re.IGNORECASE
)
_NAMED = re.compile(r"<function=(?P<name>\w+)>(?P<body>.*?)(?:</function>|\Z)", re.DOTALL)
_MARKS = re.compile(r"^[ \t]*(?:\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_call\|>)[ \t]*", re.MULTILINE)
_LINE = re.compile(r"^[ \t]*(?=[{\[])", re.MULTILINE)


class WrittenCalls(NamedTuple):
    """The calls in a text, and the rest of the text without them."""

    calls: tuple[ToolCall, ...]
    rest: str


def arguments_of(call: ToolCall) -> Arguments | None:
    """Parse the arguments of a call; None if they are not a JSON object."""
    found = _loads(call.arguments or "{}")
    return cast("Arguments", found) if isinstance(found, dict) else None


def written_calls(text: str) -> WrittenCalls:
    """Parse the calls that a model wrote into its text, in the forms that models use for it. Never raises.

    Only an unambiguous form counts as a call: JSON that names one of the tools, with arguments that fit it, in a fence
    or tag of its own, or at the start of a line. Everything else is left unchanged.
    """
    if len(text) > LONGEST or not any(name in text for name in NAMES):
        return WrittenCalls((), text)
    found: list[ToolCall] = []
    rest = _from_tags(_NAMED, _from_tags(_TAGS, text, found), found)
    rest = _from_lines(_MARKS.sub("", _from_fences(rest, found)), found)
    calls = tuple(call.model_copy(update={"id": f"look-{number}"}) for number, call in enumerate(found, 1))
    return WrittenCalls(calls, rest.strip() if calls else text)


def _from_tags(shape: re.Pattern[str], text: str, found: list[ToolCall]) -> str:
    """Return the text without the tags of this form that hold calls."""

    def replace(passage: re.Match[str]) -> str:
        value = _loads(_unfenced(_MARKS.sub("", passage["body"]).strip()))
        if "name" in passage.groupdict():
            value = {"name": passage["name"], "arguments": value}
        calls = list(_calls(value))
        found.extend(calls)
        return "" if calls else passage[0]

    return shape.sub(replace, text)


def _from_fences(text: str, found: list[ToolCall]) -> str:
    """Return the text without the fenced passages that are calls. After an unclosed fence there is no other."""
    lines = text.splitlines(keepends=True)
    kept: list[str] = []
    at = 0
    while at < len(lines):
        end = at
        if opened := _OPENS.fullmatch(lines[at]):
            end = next((later for later in range(at + 1, len(lines)) if lines[later].strip() == opened[1]), len(lines))
            calls = list(_calls(_loads("".join(lines[at + 1 : end])))) if end < len(lines) else []
            found.extend(calls)
            at = end + 1 if calls else at
        kept += lines[at : end + 1]
        at = max(at, end + 1)
    return "".join(kept)


def _unfenced(body: str) -> str:
    """Return the content of a fence, if the text is nothing else."""
    lines = body.splitlines(keepends=True)
    opened = _OPENS.fullmatch(lines[0]) if len(lines) > 2 else None
    return "".join(lines[1:-1]) if opened and lines[-1].strip() == opened[1] else body


def _from_lines(text: str, found: list[ToolCall]) -> str:
    """Return the text without JSON that begins a line and is a call."""
    decoder, kept, at = json.JSONDecoder(strict=False), list[str](), 0
    for place in _LINE.finditer(text):
        if place.start() < at:
            continue
        try:
            value, end = decoder.raw_decode(text, place.end())
        except (ValueError, RecursionError):
            continue
        if calls := list(_calls(value)):
            found.extend(calls)
            kept.append(text[at : place.start()])
            at = end
    return "".join((*kept, text[at:]))


def _loads(text: str) -> object:
    """Parse JSON, or a Python literal as small models write it; None if it is neither."""
    if len(text) > LONGEST_CALL:
        return None
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        pass
    try:
        return cast("object", ast.literal_eval(text.strip()))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _calls(value: object) -> Iterator[ToolCall]:
    """Yield the calls that a JSON value represents; none if any part of it is something else."""
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    if len(values) == 1 and isinstance(values[0], dict):
        inner = cast("dict[str, object]", values[0]).get("tool_calls")
        values = cast("list[object]", inner) if isinstance(inner, list) else values
    calls = [_call(item) for item in values]
    if all(calls):
        yield from (call for call in calls if call is not None)


def _call(value: object) -> ToolCall | None:
    if not isinstance(value, dict):
        return None
    said = cast("dict[str, object]", value)
    if isinstance(said.get("function"), dict):
        said = cast("dict[str, object]", said["function"])
    if len(said) == 1 and (name := next(iter(said))) in NAMES:
        return _fitting(name, said[name])
    key = next((key for key in _WHICH if said.get(key) in NAMES), None)
    if key is None:
        return None
    name = cast("str", said[key])
    inner = next((said[other] for other in _WITH if other in said), None)
    if inner is None:
        inner = {other: message for other, message in said.items() if other not in (key, "id", "type")}
    return _fitting(name, inner)


def _fitting(name: str, given: object) -> ToolCall | None:
    value = _loads(given) if isinstance(given, str) else given
    if not isinstance(value, dict):
        return None
    arguments = named(name, cast("Arguments", value))
    if not set(arguments) <= _PARAMETERS[name] or not (arguments or name in ("outline", "history")):
        return None
    return ToolCall(id="", name=name, arguments=json.dumps(arguments, default=str))


_OTHER_NAMES = {
    **dict.fromkeys(("file", "file_path", "filepath", "filename", "file_name", "folder", "dir", "directory"), "path"),
    **dict.fromkeys(("start_line", "line_start", "from", "first", "line"), "start"),
    **dict.fromkeys(("end_line", "line_end", "to", "last"), "end"),
    **dict.fromkeys(("query", "pattern", "q", "string"), "text"),
    **dict.fromkeys(("is_regex", "regexp", "use_regex"), "regex"),
    **dict.fromkeys(("case_insensitive", "ignorecase"), "ignore_case"),
}


def named(look: str, given: Arguments) -> dict[str, object]:
    """Return the arguments under our names for them. None values are left out."""
    fits = _PARAMETERS.get(look, frozenset[str]())
    found: dict[str, object] = {}
    for key, value in given.items():
        other = _OTHER_NAMES.get(key.lower(), key.lower())
        if look == "references" and key.lower() in ("symbol", "identifier", "text", "query"):
            other = "name"
        if look == "read" and key.lower() in ("name", "function", "class"):
            other = "symbol"
        if look == "read" and key.lower() == "lines":
            found |= _range(value)
        elif value is not None:
            found[key if key in fits else other] = value
    return found


def _range(value: object) -> dict[str, object]:
    """Parse lines such as `10-40`, `[10, 40]` or a number."""
    if isinstance(value, str):
        value = re.findall(r"\d{1,9}", value)
    numbers = cast("list[object]", value) if isinstance(value, list) else [value]
    return {"start": numbers[0], "end": numbers[-1]} if numbers else {}
