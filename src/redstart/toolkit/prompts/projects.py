"""Describes a new program in a question: its language, name and kind, and how its tests are written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from redstart.core.run import RunSpec
from redstart.core.tasks import CreateTask
from redstart.core.wishes import ProgramKind
from redstart.toolkit.base.text import data
from redstart.toolkit.languages.new_program import ProgramWords
from redstart.toolkit.languages.registry import ability_of
from redstart.toolkit.prompts.render import form_of_answer, section

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


def project(spec: RunSpec, packages: Sequence[str] = (), *, planned: bool = True) -> str:
    """Describe the language, name and kind of a new program and its packages, which a plan may still choose."""
    said, kind = _words(spec), spec.task_of(CreateTask).kind
    made_with = said.alone if planned else ""
    if packages:
        made_with = f", with {said.together} and these packages, which are installed: {', '.join(packages)}"
    words = [said.about.format(name=spec.repo, made_with=made_with)]
    if kind is ProgramKind.web_app and (packages or not planned):
        words.append(_HTTP.format(started=said.starts.format(name=spec.repo)))
    elif kind is not None:
        words.append(said.kinds[kind].format(name=spec.repo))
    return section("The project", *words, "Its name:", data("user", spec.repo, 100))


def rules_of_tests(spec: RunSpec, packages: Sequence[str] = ()) -> str:
    """Describe how the program's tests are written."""
    offers = spec.task_of(CreateTask).offers
    named = "".join(f", {name}" for name in (*packages, *offers))
    said = _words(spec)
    return said.test_rules.format(offers=named) + "".join(said.offer_rules.get(offer, "") for offer in offers)


def names_that_are_taken(spec: RunSpec, files: Iterable[str]) -> str:
    """Describe, for a part of a program, the existing files and how to name its new test files."""
    if not spec.whole:
        return ""
    words = "_".join(re.findall(r"[a-z0-9]+", spec.goal.casefold()))[:40].strip("_") or f"part_{spec.errand}"
    begins = _words(spec).part_tests.format(words=words)
    listed = "\n".join(sorted(files))
    told = f"They stay as they are. Begin the name of each new file with `{begins}`: so it is nobody else's."
    return section("Files that are there", data("files", listed, 4000), told)


def answer_with_tests(spec: RunSpec) -> str:
    """Describe the form of an answer that contains tests."""
    return _ANSWER.format(path=_words(spec).test_example)


def brief_answer_with_tests(spec: RunSpec) -> str:
    """Describe that form for a small model, which copies examples literally and loses track of a long list."""
    said = _words(spec)
    form = form_of_answer("brief_tests").replace("{language}", said.fence)
    named = {"runner": said.runner, "main": said.imported, "path": said.first_test}
    for hole, text in named.items():
        form = form.replace(f"{{{hole}}}", text.format(name=spec.repo))
    return form


def brief_answer_with_program(spec: RunSpec) -> str:
    """Describe the form of an answer that contains a small program: one file."""
    said = _words(spec)
    path = said.main.format(name=spec.repo)
    return form_of_answer("brief_new").replace("{path}", path).replace("{language}", said.fence)


def _words(spec: RunSpec) -> ProgramWords:
    return ability_of(spec.suite.runner, lambda language: language.new_programs).words
