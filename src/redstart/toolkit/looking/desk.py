"""Serve tool calls. Pure: a result depends only on the snapshot and the call, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from redstart.core.chat import Tool, ToolCall
from redstart.core.noun import clip
from redstart.core.run import RunState
from redstart.core.shell import Environment
from redstart.ports.bundle import Ports
from redstart.toolkit.base.search import Search, walk_search
from redstart.toolkit.languages.registry import language_of_file
from redstart.toolkit.looking.calls import LOOKS, Arguments, WrittenCalls, arguments_of, named, written_calls
from redstart.toolkit.looking.files import Files, FileText, ReadRefusal, plain
from redstart.toolkit.looking.past import attempts, commits
from redstart.toolkit.looking.search import Matches, find_pattern, find_text
from redstart.toolkit.looking.symbols import Symbol, symbols

LINES = 250
"""Lines of a file in one result."""
SHOWN = 8000
"""Characters of one result."""
FAR = 100_000
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


def desk(
    run: RunState,
    ports: Ports,
) -> Toolset:
    """Open the toolset of a run: it shows the files that the next edits change."""

    def read(path: str) -> bytes | None:
        return ports.trees.read(run.ground, path)

    def log(path: str) -> str:
        environment = Environment.model_validate_json(ports.blobs.get(run.spec.suite.environment))
        return commits(environment, path)

    files = Files(
        ports.trees.files(run.ground) if run.spec.looks else (), read, lambda path: ports.trees.size(run.ground, path)
    )
    return Toolset(
        files,
        walk_search(files.under(""), read),
        lambda: attempts(run.history, lambda diff: ports.blobs.get(diff).decode(errors="replace")),
        log,
    )


class Toolset:
    """Serves tool calls on `files`.

    `search` returns where names occur, `read_attempts` what the run did so far, `read_log` a file's commits. The last
    two return text that is not ours; it is empty if there is nothing to report.
    """

    tools: tuple[Tool, ...] = LOOKS

    def __init__(
        self,
        files: Files,
        find: Search,
        tried: Callable[[], str],
        log: Callable[[str], str],
    ) -> None:
        self._files, self._find, self._tried, self._log = files, find, tried, log

    def written(self, text: str) -> WrittenCalls:
        """Parse the tool calls that a model wrote into its text."""
        return written_calls(text)

    def serve(self, call: ToolCall) -> ToolResult:
        """Answer any call with a result of bounded size, in bounded time."""
        looks = {
            "read": self._read,
            "search": self._search,
            "outline": self._outline,
            "references": self._references,
            "history": self._history,
        }
        given = arguments_of(call)
        if call.name not in looks:
            return _no(ReadRefusal(f"there is no {clip(call.name, 40)!r}: there are {', '.join(looks)}"))
        if given is None:
            return _no(ReadRefusal("the arguments are no JSON object"))
        shown = looks[call.name](named(call.name, given))
        return shown._replace(source=clip(shown.source, 300), text=clip(shown.text, SHOWN))

    def _read(self, given: Arguments) -> ToolResult:
        path, symbol = _word(given, "path"), _word(given, "symbol")
        path, start, end = _with_lines(path, given)
        if symbol:
            return self._symbol(path, symbol)
        text = self._files.text(path)
        if isinstance(text, ReadRefusal):
            return _no(text)
        if start is None or end is None or start < 1 or end < start or end - start >= FAR:
            return _no(ReadRefusal("start and end are to be numbers of lines, from 1"))
        if start > max(len(text.lines), 1):
            return _no(ReadRefusal(f"{text.path} has {len(text.lines)} lines"))
        return _lines(text, start, min(end, start + LINES - 1, len(text.lines)))

    def _symbol(self, path: str, name: str) -> ToolResult:
        if path:
            text = self._files.text(path)
            if isinstance(text, ReadRefusal):
                return _no(text)
            texts = [text]
        else:
            places = dict.fromkeys(hit.path for hit in self._find([name.rpartition(".")[2]]) if hit.defines)
            texts = [text for place in places if isinstance(text := self._files.text(place), FileText)]
        found = [(text, symbol) for text in texts for symbol in symbols(text) if _is_called(symbol, name)]
        if not found:
            return _no(ReadRefusal(f"no definition of {clip(name, 80)} was found"))
        text, one = found[0]
        shown = _lines(text, one.start, min(one.end, one.start + LINES - 1))
        others = [f"{text.path}:{item.start}" for text, item in found[1:6]]
        return shown._replace(text=f"{shown.text}\n(also defined: {', '.join(others)})") if others else shown

    def _search(self, given: Arguments) -> ToolResult:
        wanted, folder = given.get("text"), self._folder(_word(given, "path"))
        if isinstance(folder, ReadRefusal):
            return _no(folder)
        if not isinstance(wanted, str) or not wanted.strip() or "\0" in wanted or "\n" in wanted or len(wanted) > 2000:
            return _no(ReadRefusal("say in `text` what to look for, in one line"))
        ignore = _is_true(given, "ignore_case")
        if _is_true(given, "regex"):
            found = find_pattern(self._files, folder, wanted, ignore_case=ignore)
        else:
            found = find_text(self._files, folder, wanted, ignore_case=ignore)
        return _no(found) if isinstance(found, ReadRefusal) else _found(found, wanted)

    def _outline(self, given: Arguments) -> ToolResult:
        path = self._folder(_word(given, "path"))
        if isinstance(path, ReadRefusal):
            return _no(path)
        paths = self._files.under(path)
        if paths == [path]:
            text = self._files.text(path)
            if isinstance(text, ReadRefusal):
                return _no(text)
            told = [f"{symbol.start}-{symbol.end}  {symbol.head}" for symbol in symbols(text)]
            return ToolResult(f"outline of {path}", "\n".join(told) or f"{len(text.lines)} lines, which define nothing")
        if not paths:
            return _no(ReadRefusal(f"there is no file or folder {clip(path, 200)}"))
        return ToolResult(f"outline of {path or 'the project'}", "\n".join(self._entries(path, paths)))

    def _entries(self, folder: str, paths: Sequence[str]) -> list[str]:
        """List a folder's files with what they define; for many files, its subfolders with their file counts."""
        if len(paths) > ENTRIES:
            depth = folder.count("/") + 1 if folder else 0
            counts: dict[str, int] = {}
            for path in paths:
                parts = path.split("/")
                name = "/".join(parts[: depth + 1]) + ("/" if len(parts) > depth + 1 else "")
                counts[name] = counts.get(name, 0) + 1
            told = [f"{name}  ({count} files)" if name.endswith("/") else name for name, count in counts.items()]
            return [*told[:ENTRIES], *([f"({len(told) - ENTRIES} more)"] if len(told) > ENTRIES else [])]
        entries: list[str] = []
        lines = 0
        for path in paths:
            text = self._files.text(path) if _is_listed(path) and lines < PARSED else ReadRefusal("")
            lines += len(text.lines) if isinstance(text, FileText) else 0
            names = (
                [symbol.name for symbol in symbols(text) if "." not in symbol.name][:12]
                if isinstance(text, FileText)
                else []
            )
            entries.append(f"{path}: {', '.join(names)}" if names else path)
        return entries

    def _references(self, given: Arguments) -> ToolResult:
        name = _word(given, "name").rpartition(".")[2]
        if not name.isidentifier() or len(name) > 200:
            return _no(ReadRefusal("say in `name` an identifier"))
        hits = [hit for hit in self._find([name]) if not isinstance(plain(hit.path), ReadRefusal)]
        if not hits:
            return _no(ReadRefusal(f"{name} was not found, or in too many files: search for it in a folder"))
        told: list[str] = []
        for hit in sorted(hits, key=lambda item: not item.defines)[:REFERENCES]:
            text = self._files.text(hit.path)
            line = (
                text.lines[hit.line - 1].strip() if isinstance(text, FileText) and hit.line <= len(text.lines) else ""
            )
            told.append(f"{hit.path}:{hit.line}:{' (defines)' if hit.defines else ''} {clip(line, 200)}")
        more = [f"({len(hits) - REFERENCES} more)"] if len(hits) > REFERENCES else []
        return ToolResult(f"references of {name}", "\n".join((*told, *more)))

    def _history(self, given: Arguments) -> ToolResult:
        asked = _word(given, "path")
        if not asked:
            return ToolResult("this run", self._tried() or "nothing was tried yet")
        path = plain(asked)
        if isinstance(path, ReadRefusal):
            return _no(path)
        if not self._files.under(path):
            return _no(ReadRefusal(f"there is no file {clip(path, 200)}"))
        return ToolResult(f"commits of {path}", self._log(path) or "no commits are known of it")

    def _folder(self, asked: str) -> str | ReadRefusal:
        """Return the folder to search; empty for the root."""
        if asked.strip() in ("", ".", "./", "*"):
            return ""
        return plain(asked)


def _is_listed(path: str) -> bool:
    """Whether a folder's listing shows what this file defines."""
    language = language_of_file(path)
    return language is not None and path.endswith(language.listed_suffixes)


def _no(refused: ReadRefusal) -> ToolResult:
    return ToolResult("", refused.reason, refused=True)


def _word(given: Arguments, key: str) -> str:
    value = given.get(key)
    return value if isinstance(value, str) else ""


def _is_true(given: Arguments, key: str) -> bool:
    value = given.get(key)
    return value is True or (isinstance(value, str) and value.strip().lower() in ("true", "yes", "1"))


def _number(value: object) -> int | None:
    """Parse a whole number in any form that models write."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value.strip()) < 10:
        return int(value)
    return int(value) if isinstance(value, int | float) and abs(value) < 10**9 and value == int(value) else None


def _with_lines(path: str, given: Arguments) -> tuple[str, int | None, int | None]:
    """Return path and range; the range may also follow the path: `a.py:10-40`."""
    name, _, behind = path.rpartition(":")
    first, _, last = behind.partition("-")
    if name and first.isdigit() and (last.isdigit() or not last):
        return name, _number(first), _number(last or first)
    start = _number(given["start"]) if "start" in given else 1
    if "end" in given:
        return path, start, _number(given["end"])
    return path, start, None if start is None else start + LINES - 1


def _lines(text: FileText, start: int, end: int) -> ToolResult:
    last = len(text.lines)
    shown = "\n".join(text.lines[start - 1 : end])
    more = f"\n(the file has {last} lines)" if (start, end) != (1, last) else ""
    return ToolResult(f"{text.path} lines {start}-{end}", shown + more)


def _is_called(one: Symbol, name: str) -> bool:
    return one.name == name or one.name.endswith(f".{name}")


def _found(found: Matches, wanted: str) -> ToolResult:
    told = [f"{item.path}:{item.line}: {clip(item.text.strip(), 200)}" for item in found.first]
    if found.more:
        told.append("(there are more: narrow it down)")
    if found.left_out:
        told.append(f"({found.left_out} files were not looked through: name a folder)")
    return ToolResult(f"search for {clip(wanted, 100)}", "\n".join(told) or "nothing was found")
