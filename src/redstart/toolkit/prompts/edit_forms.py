"""Choose and describe the form in which a question asks for edits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from redstart.core.change import EditKind
from redstart.core.run import AttemptSummary
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.languages.protocol import Language
from redstart.toolkit.languages.registry import find_file_language
from redstart.toolkit.prompts.render import format_section, load_answer_form

REJECTS = 2
"""After this many attempts whose edits of a file did not fit, the question asks for the whole file."""
MAX_FILE_CHARACTERS = 30_000


def describe_form(requested: EditKind, *, as_json: bool = False, may_set_aside: bool = False) -> str:
    """Describe the form of the answer: edits in this form, as text or as JSON.

    With `may_set_aside`, the answer may also name failing tests that the code is not to blame for.
    """
    if not as_json:
        form = load_answer_form(requested.value)
        return "\n".join((form, load_answer_form("not_this_code"))) if may_set_aside else form
    return load_answer_form("json_whole" if requested is EditKind.whole else "json_block")


def describe_brief_form(
    requested: EditKind, path: str, *, as_json: bool = False, omits_documentation: bool = False
) -> str:
    """Describe the form briefly, with the path of a file that was shown: a small model copies examples literally.

    With `omits_documentation`, a whole file is requested without comments and docstrings, if they can be put back.
    """
    kinds = (EditKind.whole, EditKind.block) if as_json else (EditKind.whole, EditKind.block, EditKind.diff)
    kind = requested if requested in kinds else EditKind.block
    language = find_file_language(path) or Language()
    name = f"brief_{'json_' if as_json else ''}{kind.value}"
    if omits_documentation and name == "brief_whole" and language.edited_code is not None:
        name = "brief_code"
    return load_answer_form(name).replace("{path}", path).replace("{head}", language.function_head)


def build_whole_files_section(paths: Sequence[str], read: Callable[[str], bytes | None]) -> str:
    """Build a section that asks for these whole files and shows their current text. Empty if there are none."""
    blocks: list[str] = []
    for path in paths:
        text = (read(path) or b"").decode(errors="replace")
        if text.strip() and len(text) <= MAX_FILE_CHARACTERS:
            blocks += [
                f"Edits of {path} did not fit. Give it as a whole: the path on a line of its own, then all of the file "
                "between ``` and ```, with nothing left out. It stands now as:",
                wrap_untrusted(path, text, MAX_FILE_CHARACTERS + 1000),
            ]
    return format_section("Form of the edits", *blocks)


def find_often_rejected(history: Sequence[AttemptSummary]) -> tuple[str, ...]:
    """Find the files whose edits did not fit in several attempts."""
    counts = Counter(
        path
        for attempt in history
        if attempt.red is None and not attempt.diff and not attempt.refused
        for path in attempt.files
        if path in attempt.outcome
    )
    return tuple(path for path, times in counts.items() if times >= REJECTS)
