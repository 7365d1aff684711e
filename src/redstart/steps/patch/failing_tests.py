"""Show the failing tests of a run to the model, one of each cause in full."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.core.context import Context
from redstart.core.report import Case
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.patching.policy import find_protection
from redstart.toolkit.prompts import sections
from redstart.toolkit.retrieval.test_source import TestSourceReader
from redstart.toolkit.suites.suite_directory import TreeView


def build_failing_section(run: RunState, ports: Ports, cases: Sequence[Case], context: Context | None) -> str:
    """Show failing tests of the code to edit, without the sources that the question shows as `context`."""
    view = _open_workspace(run, ports)
    is_source = view.build_source_filter(find_protection)
    reader = _read_tests(view, context)
    return sections.build_failing_section(
        cases, len(cases), group=lambda case: sign(case, is_source=is_source).family, read_source=reader.read
    )


def build_broken_section(run: RunState, ports: Ports, cases: Sequence[Case]) -> str:
    """Show tests that the last edits broke, each in full."""
    return sections.build_broken_section(cases, _read_tests(_open_workspace(run, ports), None).read)


def _open_workspace(run: RunState, ports: Ports) -> TreeView:
    return TreeView.open(run.spec.suite, ports.trees, run.workspace)


def _read_tests(view: TreeView, context: Context | None) -> TestSourceReader:
    return TestSourceReader(view.snapshot_paths, view.read, view.find_file, context)
