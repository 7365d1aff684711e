"""Show the project of a run to the model: an existing one with its notes, or a new one with its tests."""

from __future__ import annotations

from collections.abc import Callable

from redstart.core.run import RunState
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.projects import describe_project

ReadFile = Callable[[str], bytes | None]


def build_project_sections(run: RunState, read: ReadFile) -> dict[str, str]:
    """Build the sections that describe the project."""
    if not run.spec.task.makes_program:
        return {"notes": sections.build_notes_section(read)}
    return {
        "package": describe_project(run.spec, run.packages),
        "new_tests": sections.build_new_tests_section(_list_new_tests(run), read),
    }


def build_code_section(run: RunState, read: ReadFile) -> str:
    """Build the section with the code to edit, without tests that are shown in a section of their own."""
    context, shown_paths = run.now.retrieve, _list_new_tests(run)
    if context is not None and shown_paths:
        chunks = tuple(chunk for chunk in context.chunks if chunk.path not in shown_paths)
        context = context.model_copy(update={"chunks": chunks})
    return sections.build_code_section(context, read)


def _list_new_tests(run: RunState) -> tuple[str, ...]:
    """List the tests that were written for a new program, or that its user gave."""
    return run.now.reproduce.tests if run.spec.task.makes_program and run.now.reproduce else ()
