"""What a failure is called, so that the same bug has the same name on another machine and after other edits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from posixpath import basename, normpath
from typing import NamedTuple

from redstart.core.learning import Signature
from redstart.core.noun import clip
from redstart.core.report import Case

MESSAGE_LIMIT = 300

_SECTION = re.compile(r"^-+ Captured .*", re.MULTILINE)
_CHAIN = re.compile(
    r"^(?:E\s+)?(?:The above exception was the direct cause of the following exception:"
    r"|During handling of the above exception, another exception occurred:)\s*$",
    re.MULTILINE,
)
_PYTEST_FRAME = re.compile(r"^(?P<path>[^\s:][^:\n]*\.py):\d+: ?(?:in (?P<name>.+)|[\w.]*)$")
_PYTHON_FRAME = re.compile(r'^(?:E\s)?\s*File "(?P<path>[^"\n]+)", line \d+(?:, in (?P<name>.+))?$')
_SCRIPT_FRAME = re.compile(
    r"^\s+at (?:async )?(?:(?P<name>.+?) \()?(?:file://)?(?P<path>[^\s():]+\.[cm]?[jt]sx?):\d+(?::\d+)?\)?$"
)
_ENTRY_END = re.compile(r"^(?:_ )+_?\s*$")
_DEF = re.compile(r"^[>\s]*(?:async\s+)?def\s+(\w+)")
_PHASE = re.compile(r'^failed on (?:setup|teardown) with "(.*)"$', re.DOTALL)
_RAISED = re.compile(
    r"^(?P<type>(?:[A-Za-z_]\w*\.(?:<locals>\.)?)*(?:_*[A-Z]\w*|(?<=\.)[a-z_]\w*))(?::(?:\s+(?P<text>.*))?)?$",
)
_SAYS_NOTHING = ("", "collection failure")

LINE_LIMIT = 4000
"""Of a line, so much is looked at: the rest of a longer one says nothing more about what kind of failure it is."""

# pytest writes the escape character into its XML as the text `#x1B`
_ANSI = re.compile(r"(?:\x1b|#x1B)\[[0-?]*[ -/]*[@-~]")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+")
_TIME = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"
)
_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)
# with a letter and a digit: what has no digit may be a word; what has no letter, or an exponent, is left to `_NUMBER`
_HEX = re.compile(r"\b0x[0-9a-f]+\b|(?<![\w.])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}\b(?![+-]\d)", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w.>/])/[^\s'\"`:,;()\[\]{}<>|]+")
_TEMPORARY = re.compile(r"^(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm)(?:/|$)")
_SITE = re.compile(r"^.*/(?:site|dist)-packages/")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d_]*(?:\.\d+)*\.?(?:e[-+]?\d+)?j?", re.IGNORECASE)
_QUOTED = re.compile(r"(?<!\w)[bru]{0,2}(?P<quote>['\"])(?P<text>(?:\\.|(?!(?P=quote)).)*)(?P=quote)(?!\w)")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_CONTAINER = re.compile(r"\w*(?:\([^()\[\]{}]*\)|\[[^()\[\]{}]*\]|\{[^()\[\]{}]*\})")


class _Frame(NamedTuple):
    path: str
    name: str


class _Raised(NamedTuple):
    type: str
    text: str


def sign(case: Case, *, is_source: Callable[[str], bool], roots: Sequence[str] = ()) -> Signature:
    """The signature of a red case, from the runner's message and its traceback (pytest's or Python's own).

    `is_source` tells the repo's source from its tests, for paths relative to the repo. `roots` are the absolute
    folders where the repo may lie, as tracebacks show them: an absolute path under none of them is not the repo's.
    Never fails: what the text does not tell is empty, and the frame is then the test's own id without parameters.
    """
    parts = _CHAIN.split(_SECTION.split(_plain(case.detail), maxsplit=1)[0])
    raised = _raised(_plain(case.message).strip(), parts[-1])
    message = _normalise(raised.text, roots, assertion=raised.type == "AssertionError")
    return Signature(
        exception=raised.type,
        message=clip(message, MESSAGE_LIMIT),
        frame=_source_frame(parts, is_source, roots) or case.id.partition("[")[0],
    )


def _raised(message: str, traceback: str) -> _Raised:
    phase = _PHASE.match(message)
    said = _first_line(phase[1] if phase else message)
    found = _parse_raised(said)
    if found is not None:
        return found
    for line in traceback.splitlines():
        marked = re.match(r"^E\s+(.*)$", line)
        found = _parse_raised(marked[1] if marked else line)
        if found is None or (marked is None and not found.type.endswith(("Error", "Exception"))):
            continue
        return found if said in _SAYS_NOTHING else _Raised(found.type, said)
    return _Raised("", said)


def _parse_raised(line: str) -> _Raised | None:
    line = line.strip()
    if line.startswith("assert "):
        return _Raised("AssertionError", line)
    match = _RAISED.match(line)
    return None if match is None else _Raised(match["type"].replace("<locals>.", ""), (match["text"] or "").strip())


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _source_frame(parts: Sequence[str], is_source: Callable[[str], bool], roots: Sequence[str]) -> str:
    """The innermost frame in the repo's source: of the exception that reached the test first, then of its causes."""
    for part in reversed(parts):
        for frame in reversed(_frames(part)):
            path = _local_path(frame.path, roots)
            if path and frame.name and is_source(path):
                return f"{path}:{frame.name}"
    return ""


def _frames(traceback: str) -> list[_Frame]:
    """Outermost first. A frame without a lasting name (a lambda, a comprehension) has an empty one."""
    frames: list[_Frame] = []
    shown = ""  # the function whose source pytest has shown since the last frame
    inner: list[_Frame] = []  # node shows the innermost first
    for line in traceback.splitlines():
        if script := _SCRIPT_FRAME.match(line):
            inner.append(_Frame(script["path"], _lasting(_script_name(script["name"] or ""))))
            continue
        match = _PYTEST_FRAME.match(line) or _PYTHON_FRAME.match(line)
        if match is not None:
            from_python = match.re is _PYTHON_FRAME
            name = match["name"] or ("<module>" if from_python else shown)
            frames.append(_Frame(match["path"], _lasting(name)))
            shown = ""
        elif _ENTRY_END.match(line):
            shown = ""
        elif not shown and (defined := _DEF.match(line)):
            shown = defined[1]
    return frames + inner[::-1]


def _script_name(name: str) -> str:
    """`Cart.add` of `Cart.add`, `Object.add [as sum]` or `new Cart`; the top of a file is `<module>`."""
    plain = name.partition(" [as ")[0].removeprefix("new ")
    parts = [
        part for part in plain.split(".") if part not in ("Object", "Module", "exports", "<anonymous>", "Function")
    ]
    return ".".join(parts) or "<module>"


def _lasting(name: str) -> str:
    kept = [part for part in name.strip().split(".") if part != "<locals>"]
    if kept and kept[-1].startswith("<") and kept[-1] != "<module>":
        return ""
    return ".".join(kept)


def _plain(text: str) -> str:
    """Without colours, and with every line ended by a newline alone."""
    return _ANSI.sub("", text).replace("\r\n", "\n")


def _normalise(line: str, roots: Sequence[str], *, assertion: bool) -> str:
    """One line with numbers, addresses, times, places and quoted text replaced by what kind of thing stood there.

    Quoted names stay, because which attribute or key is missing is the failure. Of an assertion, which shows values,
    whole containers are replaced. Numbers of all spellings have one mark: a short hash may happen to have no letter.
    """
    text = _URL.sub("<url>", line[:LINE_LIMIT])
    for root in _longest_first(roots):
        text = re.sub(re.escape(root) + r"(?![\w.-])", "<repo>", text)
    text = _PATH.sub(lambda found: _place(found[0]), text)
    text = _TIME.sub("<time>", text)
    text = _UUID.sub("<n>", text)
    text = _HEX.sub("<n>", text)
    text = _NUMBER.sub("<n>", text)
    text = _QUOTED.sub(_quoted, text)
    if assertion:
        text = _collapse(text)
    return " ".join(text.split())


def _local_path(path: str, roots: Sequence[str]) -> str:
    """A traceback's path relative to the repo; empty where it is not the repo's."""
    for root in _longest_first(roots):
        if path.startswith(root + "/"):
            path = path[len(root) + 1 :]
            break
    path = normpath(path)
    outside = path.startswith(("/", "..", "<")) or "site-packages/" in path or "dist-packages/" in path
    return "" if outside else path


def _longest_first(roots: Sequence[str]) -> list[str]:
    return sorted((root.rstrip("/") for root in roots if root.rstrip("/")), key=lambda root: (-len(root), root))


def _place(path: str) -> str:
    if _TEMPORARY.match(path):
        return "<tmp>"
    site = _SITE.match(path)
    return f"<site>/{path[site.end() :]}" if site else basename(path.rstrip("/")) or path


def _quoted(found: re.Match[str]) -> str:
    return f"'{found['text']}'" if _DOTTED.fullmatch(found["text"]) else "<str>"


def _collapse(text: str) -> str:
    while True:
        shorter = _CONTAINER.sub("<values>", text)
        if shorter == text:
            return text
        text = shorter
