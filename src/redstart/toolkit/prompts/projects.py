"""Describe a new program in a question: its language, name and kind, and how its tests are written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from redstart.core.run import RunSpec
from redstart.core.run_preferences import ProgramKind
from redstart.core.tasks import CreateTask
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.languages.new_program import ProgramWords
from redstart.toolkit.languages.registry import get_runner_ability
from redstart.toolkit.prompts.render import format_section, load_answer_form

_HTTP = (
    "An application that answers over HTTP{started}. Its tests use the test client of its framework, or start it on a "
    "free port of 127.0.0.1 inside their own process, ask it over HTTP and stop it again."
)
"""A web application whose packages the plan may choose or has chosen."""
_ANSWER = """Answer with one block for each file, without code fences, the SEARCH part empty:

{path}
<<<<<<< SEARCH
=======
the whole file
>>>>>>> REPLACE"""


def describe_project(spec: RunSpec, packages: Sequence[str] = (), *, planned: bool = True) -> str:
    """Describe the language, name and kind of a new program and its packages, which a plan may still choose."""
    wording, kind = _get_program_words(spec), spec.get_task(CreateTask).kind
    made_with = wording.no_packages if planned else ""
    if packages:
        made_with = f", with {wording.standard_modules} and these packages, which are installed: {', '.join(packages)}"
    sentences = [wording.description.format(name=spec.repo, made_with=made_with)]
    if kind is ProgramKind.web_app and (packages or not planned):
        sentences.append(_HTTP.format(started=wording.starts.format(name=spec.repo)))
    elif kind is not None:
        sentences.append(wording.kinds[kind].format(name=spec.repo))
    return format_section("The project", *sentences, "Its name:", wrap_untrusted("user", spec.repo, 100))


def describe_test_rules(spec: RunSpec, packages: Sequence[str] = ()) -> str:
    """Describe how the program's tests are written."""
    offers = spec.get_task(CreateTask).offers
    names = "".join(f", {name}" for name in (*packages, *offers))
    wording = _get_program_words(spec)
    return wording.test_rules.format(offers=names) + "".join(wording.offer_rules.get(offer, "") for offer in offers)


def describe_existing_files(spec: RunSpec, files: Iterable[str]) -> str:
    """Describe, for a part of a program, the existing files and how to name its new test files."""
    if not spec.program_goal:
        return ""
    slug = "_".join(re.findall(r"[a-z0-9]+", spec.goal.casefold()))[:40].strip("_") or f"part_{spec.errand}"
    prefix = _get_program_words(spec).part_tests.format(words=slug)
    file_list = "\n".join(sorted(files))
    note = f"They stay as they are. Begin the name of each new file with `{prefix}`: so it is nobody else's."
    return format_section("Files that are there", wrap_untrusted("files", file_list, 4000), note)


def answer_with_tests(spec: RunSpec) -> str:
    """Describe the form of an answer that contains tests."""
    return _ANSWER.format(path=_get_program_words(spec).test_example)


def describe_brief_test_answer(spec: RunSpec) -> str:
    """Describe that form for a small model, which copies examples literally and loses track of a long list."""
    wording = _get_program_words(spec)
    form = load_answer_form("brief_tests").replace("{language}", wording.fence)
    values = {"runner": wording.runner, "main": wording.imported_module, "path": wording.first_test}
    for placeholder, text in values.items():
        form = form.replace(f"{{{placeholder}}}", text.format(name=spec.repo))
    return form


def describe_brief_program_answer(spec: RunSpec) -> str:
    """Describe the form of an answer that contains a small program: one file."""
    wording = _get_program_words(spec)
    path = wording.main.format(name=spec.repo)
    return load_answer_form("brief_new").replace("{path}", path).replace("{language}", wording.fence)


def _get_program_words(spec: RunSpec) -> ProgramWords:
    return get_runner_ability(spec.suite.runner, lambda language: language.new_programs).texts
