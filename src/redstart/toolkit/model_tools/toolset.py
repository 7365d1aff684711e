"""Serve tool calls. Pure: a result depends only on the snapshot and the call, and nothing is changed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.chat import Tool, ToolCall
from redstart.core.frozen import clip
from redstart.core.run import RunState
from redstart.core.shell import Environment
from redstart.ports.bundle import Ports
from redstart.toolkit.base.search import Search, walk_search
from redstart.toolkit.languages.registry import find_file_language
from redstart.toolkit.model_tools.history import describe_attempts, list_commits
from redstart.toolkit.model_tools.search import Matches, find_pattern, find_text
from redstart.toolkit.model_tools.symbols import Symbol, list_symbols
from redstart.toolkit.model_tools.tool_calls import (
    TOOLS,
    Arguments,
    get_text,
    normalize_arguments,
    parse_arguments,
)
from redstart.toolkit.model_tools.visible_files import Files, FileText, ReadRefusal, normalize_path

LINES = 250
"""Lines of a file in one result."""
MAX_RESULT_CHARACTERS = 8000
"""Characters of one result."""
NOTE_CHARACTERS = 500
"""Characters of a result that are kept for what is said below the lines of a file."""
MAX_RANGE_LINES = 100_000
"""A longer range of lines is taken for a mistake."""
REFERENCES = 60
ENTRIES = 120
PARSED = 40_000
"""Lines of a folder's files that are searched for definitions; further files are listed by name only."""


class ToolResult(NamedTuple):
    """The result of a tool call: text from the snapshot with its source, or a short reason why there is none."""

    source: str
    text: str
    refused: bool = False


def refuse(reason: str) -> ToolResult:
    """Return the result of a call that is not served."""
    return ToolResult("", reason, refused=True)


def create_toolset(
    run: RunState,
    ports: Ports,
    snapshot: Snapshot | None = None,
) -> Toolset:
    """Open the toolset of a run: it shows the files that the next edits change, or those of `snapshot`."""
    shown_snapshot = snapshot or run.workspace
    is_used = run.spec.looks or run.spec.asks.session_calls

    def read(path: str) -> bytes | None:
        return ports.trees.read(shown_snapshot, path)

    def log(path: str) -> str:
        environment = Environment.model_validate_json(ports.blobs.get(run.spec.suite.environment))
        return list_commits(environment, path)

    files = Files(
        ports.trees.list_files(shown_snapshot) if is_used else (),
        read,
        lambda path: ports.trees.get_size(shown_snapshot, path),
    )
    return Toolset(
        files,
        walk_search(files.list_paths(""), read),
        lambda: describe_attempts(run.history, lambda diff: ports.blobs.get(diff).decode(errors="replace")),
        log,
    )


class Toolset:
    """Serves tool calls on `files`.

    `search` returns where names occur, `read_attempts` what the run did so far, `read_log` a file's commits. The last
    two return text that is not ours; it is empty if there is nothing to report.
    """

    tools: tuple[Tool, ...] = TOOLS

    def __init__(
        self,
        files: Files,
        find: Search,
        read_attempts: Callable[[], str],
        log: Callable[[str], str],
    ) -> None:
        self._files, self._find, self._read_attempts, self._log = files, find, read_attempts, log

    def serve(self, call: ToolCall) -> ToolResult:
        """Answer any call with a result of bounded size, in bounded time."""
        handlers = {
            "read": self._read,
            "search": self._search,
            "outline": self._outline,
            "references": self._list_references,
            "history": self._show_history,
        }
        arguments = parse_arguments(call)
        if call.name not in handlers:
            return refuse(f"there is no {clip(call.name, 40)!r}: there are {', '.join(handlers)}")
        if arguments is None:
            return refuse("the arguments are no JSON object")
        result = handlers[call.name](normalize_arguments(call.name, arguments))
        return result._replace(source=clip(result.source, 300), text=clip(result.text, MAX_RESULT_CHARACTERS))

    def _read(self, arguments: Arguments) -> ToolResult:
        path, symbol = get_text(arguments, "path"), get_text(arguments, "symbol")
        path, start, end = _with_lines(path, arguments)
        if symbol:
            return self._read_symbol(path, symbol)
        text = self._files.read_text(path)
        if isinstance(text, ReadRefusal):
            return refuse(text.reason)
        if start is None or end is None or start < 1 or end < start or end - start >= MAX_RANGE_LINES:
            return refuse("start and end are to be numbers of lines, from 1")
        if start > max(len(text.lines), 1):
            return refuse(f"{text.path} has {len(text.lines)} lines")
        return _format_lines(text, start, min(end, len(text.lines)))

    def _read_symbol(self, path: str, name: str) -> ToolResult:
        if path:
            text = self._files.read_text(path)
            if isinstance(text, ReadRefusal):
                return refuse(text.reason)
            texts = [text]
        else:
            places = dict.fromkeys(hit.path for hit in self._find([name.rpartition(".")[2]]) if hit.defines)
            texts = [text for place in places if isinstance(text := self._files.read_text(place), FileText)]
        definitions = [(text, symbol) for text in texts for symbol in list_symbols(text) if _is_called(symbol, name)]
        if not definitions:
            return refuse(f"no definition of {clip(name, 80)} was found")
        text, definition = definitions[0]
        result = _format_lines(text, definition.start, definition.end)
        other_locations = [f"{text.path}:{item.start}" for text, item in definitions[1:6]]
        return (
            result._replace(text=f"{result.text}\n(also defined: {', '.join(other_locations)})")
            if other_locations
            else result
        )

    def _search(self, arguments: Arguments) -> ToolResult:
        query, folder = arguments.get("text"), self._resolve_folder(get_text(arguments, "path"))
        if isinstance(folder, ReadRefusal):
            return refuse(folder.reason)
        if not isinstance(query, str) or not query.strip() or "\0" in query or "\n" in query or len(query) > 2000:
            return refuse("say in `text` what to look for, in one line")
        ignore = _is_true(arguments, "ignore_case")
        if _is_true(arguments, "regex"):
            matches = find_pattern(self._files, folder, query, ignore_case=ignore)
        else:
            matches = find_text(self._files, folder, query, ignore_case=ignore)
        return refuse(matches.reason) if isinstance(matches, ReadRefusal) else _format_matches(matches, query)

    def _outline(self, arguments: Arguments) -> ToolResult:
        path = self._resolve_folder(get_text(arguments, "path"))
        if isinstance(path, ReadRefusal):
            return refuse(path.reason)
        paths = self._files.list_paths(path)
        if paths == [path]:
            text = self._files.read_text(path)
            if isinstance(text, ReadRefusal):
                return refuse(text.reason)
            lines = [f"{symbol.start}-{symbol.end}  {symbol.head}" for symbol in list_symbols(text)]
            return ToolResult(
                f"outline of {path}", "\n".join(lines) or f"{len(text.lines)} lines, which define nothing"
            )
        if not paths:
            return refuse(f"there is no file or folder {clip(path, 200)}")
        return ToolResult(f"outline of {path or 'the project'}", "\n".join(self._list_entries(path, paths)))

    def _list_entries(self, folder: str, paths: Sequence[str]) -> list[str]:
        """List a folder's files with what they define; for many files, its subfolders with their file counts."""
        if len(paths) > ENTRIES:
            depth = folder.count("/") + 1 if folder else 0
            counts: dict[str, int] = {}
            for path in paths:
                parts = path.split("/")
                name = "/".join(parts[: depth + 1]) + ("/" if len(parts) > depth + 1 else "")
                counts[name] = counts.get(name, 0) + 1
            rows = [f"{name}  ({count} files)" if name.endswith("/") else name for name, count in counts.items()]
            return [*rows[:ENTRIES], *([f"({len(rows) - ENTRIES} more)"] if len(rows) > ENTRIES else [])]
        entries: list[str] = []
        lines = 0
        for path in paths:
            text = self._files.read_text(path) if _is_listed(path) and lines < PARSED else ReadRefusal("")
            lines += len(text.lines) if isinstance(text, FileText) else 0
            names = (
                [symbol.name for symbol in list_symbols(text) if "." not in symbol.name][:12]
                if isinstance(text, FileText)
                else []
            )
            entries.append(f"{path}: {', '.join(names)}" if names else path)
        return entries

    def _list_references(self, arguments: Arguments) -> ToolResult:
        name = get_text(arguments, "name").rpartition(".")[2]
        if not name.isidentifier() or len(name) > 200:
            return refuse("say in `name` an identifier")
        hits = [hit for hit in self._find([name]) if not isinstance(normalize_path(hit.path), ReadRefusal)]
        if not hits:
            return refuse(f"{name} was not found, or in too many files: search for it in a folder")
        lines: list[str] = []
        for hit in sorted(hits, key=lambda item: not item.defines)[:REFERENCES]:
            text = self._files.read_text(hit.path)
            line = (
                text.lines[hit.line - 1].strip() if isinstance(text, FileText) and hit.line <= len(text.lines) else ""
            )
            lines.append(f"{hit.path}:{hit.line}:{' (defines)' if hit.defines else ''} {clip(line, 200)}")
        omitted = [f"({len(hits) - REFERENCES} more)"] if len(hits) > REFERENCES else []
        return ToolResult(f"references of {name}", "\n".join((*lines, *omitted)))

    def _show_history(self, arguments: Arguments) -> ToolResult:
        requested_path = get_text(arguments, "path")
        if not requested_path:
            return ToolResult("this run", self._read_attempts() or "nothing was tried yet")
        path = normalize_path(requested_path)
        if isinstance(path, ReadRefusal):
            return refuse(path.reason)
        if not self._files.list_paths(path):
            return refuse(f"there is no file {clip(path, 200)}")
        return ToolResult(f"commits of {path}", self._log(path) or "no commits are known of it")

    def _resolve_folder(self, path: str) -> str | ReadRefusal:
        """Return the folder to search; empty for the root."""
        if path.strip() in ("", ".", "./", "*"):
            return ""
        return normalize_path(path)


def _is_listed(path: str) -> bool:
    """Whether a folder's listing shows what this file defines."""
    language = find_file_language(path)
    return language is not None and path.endswith(language.listed_suffixes)


def _is_true(arguments: Arguments, key: str) -> bool:
    value = arguments.get(key)
    return value is True or (isinstance(value, str) and value.strip().lower() in ("true", "yes", "1"))


def _number(value: object) -> int | None:
    """Parse a whole number in any form that models write."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value.strip()) < 10:
        return int(value)
    return int(value) if isinstance(value, int | float) and abs(value) < 10**9 and value == int(value) else None


def _with_lines(path: str, arguments: Arguments) -> tuple[str, int | None, int | None]:
    """Return path and range; the range may also follow the path: `a.py:10-40`."""
    name, _, suffix = path.rpartition(":")
    first, _, last = suffix.partition("-")
    if name and first.isdigit() and (last.isdigit() or not last):
        return name, _number(first), _number(last or first)
    start = _number(arguments["start"]) if "start" in arguments else 1
    if "end" in arguments:
        return path, start, _number(arguments["end"])
    return path, start, None if start is None else start + LINES - 1


def _format_lines(text: FileText, start: int, end: int) -> ToolResult:
    """Show as many of these lines as fit, and say where to read on."""
    excerpt = _take_fitting(text.lines[start - 1 : min(end, start + LINES - 1)])
    last, line_count = start + len(excerpt) - 1, len(text.lines)
    note = f"\n(the file has {line_count} lines)" if (start, last) != (1, line_count) else ""
    if last < end:
        note = f"\n(cut here: read on from line {last + 1} of {line_count})"
    return ToolResult(f"{text.path} lines {start}-{last}", "\n".join(excerpt) + note)


def _take_fitting(lines: Sequence[str]) -> Sequence[str]:
    """Return the first lines that fit into one result; at least one."""
    ends = itertools.accumulate(len(line) + 1 for line in lines)
    return lines[: max(sum(end <= MAX_RESULT_CHARACTERS - NOTE_CHARACTERS for end in ends), 1)]


def _is_called(symbol: Symbol, name: str) -> bool:
    return symbol.name == name or symbol.name.endswith(f".{name}")


def _format_matches(matches: Matches, query: str) -> ToolResult:
    lines = [f"{item.path}:{item.line}: {clip(item.text.strip(), 200)}" for item in matches.first]
    if matches.has_more:
        lines.append("(there are more: narrow it down)")
    if matches.left_out:
        lines.append(f"({matches.left_out} files were not looked through: name a folder)")
    return ToolResult(f"search for {clip(query, 100)}", "\n".join(lines) or "nothing was found")
