"""The tools that a model may call, and the parser of its calls: native ones, or calls written into its text."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple, cast

from redstart.core.chat import Tool, ToolCall

LONGEST = 50_000
"""The maximum length of an answer; a longer one contains no call."""
LONGEST_CALL = 100_000

Arguments = Mapping[str, object]


def _define_tool(name: str, description: str, required: tuple[str, ...] = (), /, **properties: tuple[str, str]) -> Tool:
    shapes = {key: {"type": kind, "description": text} for key, (kind, text) in properties.items()}
    parameters: dict[str, object] = {"type": "object", "properties": shapes, "required": list(required)}
    return Tool(name=name, description=description, parameters=parameters)


TOOLS = (
    _define_tool(
        "read",
        "Read lines of a file of the project, or the definition of a symbol.",
        path=("string", "the file, from the project's root"),
        start=("integer", "first line, from 1"),
        end=("integer", "last line"),
        symbol=("string", "instead of lines: a function, class or Class.method; the path may then be left out"),
    ),
    _define_tool(
        "search",
        "Find the lines of the project that hold a text, or match a regular expression.",
        ("text",),
        text=("string", "what to look for"),
        regex=("boolean", "whether the text is a regular expression, matched line by line"),
        ignore_case=("boolean", "whether case does not matter"),
        path=("string", "only in this folder or file"),
    ),
    _define_tool(
        "outline",
        "List what a file defines, or the files of a folder with what they define.",
        path=("string", "the file or folder; leave it out for the project's root"),
    ),
    _define_tool("references", "List where a name is defined and used.", ("name",), name=("string", "an identifier")),
    _define_tool(
        "history",
        "List what earlier attempts of this run changed and how they ended; with a path, the last commits that "
        "changed that file.",
        path=("string", "the file"),
    ),
)
WORK_TOOLS = (
    _define_tool(
        "edit",
        "Change one file of your copy: replace the one place where `search` stands by `replace`. With `text` instead, "
        "write the whole file, which may be new; with `delete`, remove it.",
        ("path",),
        path=("string", "the file, from the project's root"),
        search=("string", "whole lines of the file, copied exactly; they must occur once"),
        replace=("string", "the whole lines that take their place"),
        text=("string", "the whole new text of the file"),
        delete=("boolean", "whether to remove the file"),
    ),
    _define_tool(
        "run_tests",
        "Run tests on your copy, with your edits in place; without ids, the tests that must pass.",
        ids=("string", "ids of tests, one per line"),
        all=("boolean", "whether to run the whole suite"),
    ),
    _define_tool(
        "run",
        "Run a snippet on your copy, with your edits in place, and show what it prints.",
        ("snippet",),
        snippet=("string", "the code, in the project's language"),
    ),
    _define_tool("diff", "Show everything that differs from the original code."),
    _define_tool("undo", "Take back your last edit."),
    _define_tool(
        "not_this_code",
        "Name failing tests that do not fail because of this code: they need another version of a package, or a file "
        "or a service that is not there.",
        ("ids", "reason"),
        ids=("string", "ids of failing tests, one per line"),
        reason=("string", "what these tests lack, and what in their failure shows it"),
    ),
    _define_tool(
        "submit",
        "Hand in your copy as it stands. It is then checked and tested in full.",
        why=("string", "in one sentence, what was wrong and what you changed"),
    ),
)
"""The tools of a working session, besides `TOOLS`."""
RUN_TOOL = _define_tool(
    "run",
    "Run a snippet on the project as it is, and show what it prints. Nothing that it writes is kept.",
    ("snippet",),
    snippet=("string", "the code, in the project's language"),
)
"""The tool that runs a snippet outside a working session."""
NAMES = frozenset(tool.name for tool in TOOLS)
WORK_NAMES = frozenset(tool.name for tool in WORK_TOOLS)

_PARAMETERS = {
    tool.name: frozenset(cast("dict[str, object]", tool.parameters["properties"])) for tool in (*TOOLS, *WORK_TOOLS)
}
_WITHOUT_ARGUMENTS = frozenset({"outline", "history", "run_tests", "diff", "undo", "submit"})
_TOOL_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action", "look")
_WITH = ("arguments", "args", "parameters", "params", "input", "action_input")
_OPENS = re.compile(r"[ \t]*(`{3,}|~{3,})[^`\n]*\n?")
_TAGS = re.compile(
    r"<(?P<tag>tool_call|tool_calls|function_call|tool|look)>(?P<body>.*?)(?:</(?P=tag)>|\Z)", re.DOTALL | re.IGNORECASE
)
_FUNCTION_TAG = re.compile(r"<function=(?P<name>\w+)>(?P<body>.*?)(?:</function>|\Z)", re.DOTALL)
_MARKS = re.compile(r"^[ \t]*(?:\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_call\|>)[ \t]*", re.MULTILINE)
_LINE = re.compile(r"^[ \t]*(?=[{\[])", re.MULTILINE)


class WrittenCalls(NamedTuple):
    """The calls in a text, and the rest of the text without them."""

    calls: tuple[ToolCall, ...]
    remaining_text: str


class CallIds:
    """The IDs of a conversation's tool calls. `prefix` begins those that the model did not choose."""

    def __init__(self, prefix: str, ids: Iterable[str] = ()) -> None:
        self._prefix, self._ids = prefix, set(ids)

    def assign(self, call: ToolCall) -> ToolCall:
        """Return the call with its own ID if it has one and no other call has it, else with a new one."""
        unique_id = call.id if call.id and call.id not in self._ids else f"{self._prefix}-{len(self._ids) + 1}"
        while unique_id in self._ids:
            unique_id += "x"
        self._ids.add(unique_id)
        return call.model_copy(update={"id": unique_id})


def get_text(arguments: Arguments, key: str) -> str:
    """Return an argument that is text; empty if there is none."""
    value = arguments.get(key)
    return value if isinstance(value, str) else ""


def parse_arguments(call: ToolCall) -> Arguments | None:
    """Parse the arguments of a call; None if they are not a JSON object."""
    value = _parse_value(call.arguments or "{}")
    return cast("Arguments", value) if isinstance(value, dict) else None


def parse_written_calls(text: str, names: Set[str] = NAMES) -> WrittenCalls:
    """Parse the calls of the named tools that a model wrote into its text, in the forms that models use. Never raises.

    Only an unambiguous form counts as a call: JSON that names one of the tools, with arguments that fit it, in a fence
    or tag of its own, or at the start of a line. Everything else is left unchanged.
    """
    if len(text) > LONGEST or not any(name in text for name in names):
        return WrittenCalls((), text)
    reader = _CallReader(names)
    rest = reader.take_tags(_FUNCTION_TAG, reader.take_tags(_TAGS, text))
    rest = reader.take_lines(_MARKS.sub("", reader.take_fences(rest)))
    calls = tuple(call.model_copy(update={"id": f"look-{number}"}) for number, call in enumerate(reader.calls, 1))
    return WrittenCalls(calls, rest.strip() if calls else text)


class _CallReader:
    """Collects the calls of the named tools, and returns the text without them."""

    def __init__(self, names: Set[str]) -> None:
        self._names = names
        self.calls: list[ToolCall] = []

    def take_tags(self, shape: re.Pattern[str], text: str) -> str:
        """Return the text without the tags of this form that hold calls."""

        def replace(passage: re.Match[str]) -> str:
            value = _parse_value(_strip_fence(_MARKS.sub("", passage["body"]).strip()))
            if "name" in passage.groupdict():
                value = {"name": passage["name"], "arguments": value}
            calls = list(self._parse_calls(value))
            self.calls.extend(calls)
            return "" if calls else passage[0]

        return shape.sub(replace, text)

    def take_fences(self, text: str) -> str:
        """Return the text without the fenced passages that are calls. After an unclosed fence there is no other."""
        lines = text.splitlines(keepends=True)
        kept_lines: list[str] = []
        index = 0
        while index < len(lines):
            end = index
            if opening := _OPENS.fullmatch(lines[index]):
                end = next(
                    (position for position in range(index + 1, len(lines)) if lines[position].strip() == opening[1]),
                    len(lines),
                )
                calls = (
                    list(self._parse_calls(_parse_value("".join(lines[index + 1 : end])))) if end < len(lines) else []
                )
                self.calls.extend(calls)
                index = end + 1 if calls else index
            kept_lines += lines[index : end + 1]
            index = max(index, end + 1)
        return "".join(kept_lines)

    def take_lines(self, text: str) -> str:
        """Return the text without JSON that begins a line and is a call."""
        decoder, kept_parts, position = json.JSONDecoder(strict=False), list[str](), 0
        for place in _LINE.finditer(text):
            if place.start() < position:
                continue
            try:
                value, end = decoder.raw_decode(text, place.end())
            except (ValueError, RecursionError):
                continue
            if calls := list(self._parse_calls(value)):
                self.calls.extend(calls)
                kept_parts.append(text[position : place.start()])
                position = end
        return "".join((*kept_parts, text[position:]))

    def _parse_calls(self, value: object) -> Iterator[ToolCall]:
        """Yield the calls that a JSON value represents; none if any part of it is something else."""
        values = cast("list[object]", value) if isinstance(value, list) else [value]
        if len(values) == 1 and isinstance(values[0], dict):
            nested = cast("dict[str, object]", values[0]).get("tool_calls")
            values = cast("list[object]", nested) if isinstance(nested, list) else values
        calls = [self._read_call(item) for item in values]
        if all(calls):
            yield from (call for call in calls if call is not None)

    def _read_call(self, value: object) -> ToolCall | None:
        if not isinstance(value, dict):
            return None
        fields = cast("dict[str, object]", value)
        if isinstance(fields.get("function"), dict):
            fields = cast("dict[str, object]", fields["function"])
        if len(fields) == 1 and (name := next(iter(fields))) in self._names:
            return _create_call(name, fields[name])
        key = next((key for key in _TOOL_NAME_KEYS if fields.get(key) in self._names), None)
        if key is None:
            return None
        name = cast("str", fields[key])
        arguments = next((fields[alias] for alias in _WITH if alias in fields), None)
        if arguments is None:
            arguments = {alias: message for alias, message in fields.items() if alias not in (key, "id", "type")}
        return _create_call(name, arguments)


def _strip_fence(body: str) -> str:
    """Return the content of a fence, if the text is nothing else."""
    lines = body.splitlines(keepends=True)
    opening = _OPENS.fullmatch(lines[0]) if len(lines) > 2 else None
    return "".join(lines[1:-1]) if opening and lines[-1].strip() == opening[1] else body


def _parse_value(text: str) -> object:
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


def _create_call(name: str, raw_arguments: object) -> ToolCall | None:
    value = _parse_value(raw_arguments) if isinstance(raw_arguments, str) else raw_arguments
    if not isinstance(value, dict):
        return None
    arguments = normalize_arguments(name, cast("Arguments", value))
    if not set(arguments) <= _PARAMETERS[name] or not (arguments or name in _WITHOUT_ARGUMENTS):
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


_EDIT_NAMES = {
    **dict.fromkeys(("old", "old_string", "old_str", "old_text", "find"), "search"),
    **dict.fromkeys(("new", "new_string", "new_str", "new_text", "replacement"), "replace"),
    **dict.fromkeys(("content", "contents", "file_text"), "text"),
}


def normalize_arguments(tool_name: str, arguments: Arguments) -> dict[str, object]:
    """Return the arguments under our names for them. None values are left out."""
    parameters = _PARAMETERS.get(tool_name, frozenset[str]())
    normalized: dict[str, object] = {}
    for key, value in arguments.items():
        canonical_name = _OTHER_NAMES.get(key.lower(), key.lower())
        if tool_name == "references" and key.lower() in ("symbol", "identifier", "text", "query"):
            canonical_name = "name"
        if tool_name == "read" and key.lower() in ("name", "function", "class"):
            canonical_name = "symbol"
        if tool_name == "edit":
            canonical_name = _EDIT_NAMES.get(key.lower(), canonical_name)
        if tool_name == "run" and key.lower() in ("code", "command", "script"):
            canonical_name = "snippet"
        if tool_name == "run_tests" and key.lower() in ("id", "tests", "test", "test_ids"):
            canonical_name = "ids"
        if tool_name == "submit" and key.lower() in ("reason", "message", "summary"):
            canonical_name = "why"
        if tool_name == "read" and key.lower() == "lines":
            normalized |= _parse_range(value)
        elif value is not None:
            normalized[key if key in parameters else canonical_name] = value
    return normalized


def _parse_range(value: object) -> dict[str, object]:
    """Parse lines such as `10-40`, `[10, 40]` or a number."""
    if isinstance(value, str):
        value = re.findall(r"\d{1,9}", value)
    numbers = cast("list[object]", value) if isinstance(value, list) else [value]
    return {"start": numbers[0], "end": numbers[-1]} if numbers else {}
