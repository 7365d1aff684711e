"""The copy of the project that a model works on in a session, and the tools that read, change, run and submit it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

from redstart.core.change import Edit, EditKind, Probe, Snapshot
from redstart.core.chat import ToolCall
from redstart.core.frozen import clip, format_count
from redstart.core.report import Case
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.model_tools import probes
from redstart.toolkit.model_tools.not_this_code import NotThisCode, find_not_this_code
from redstart.toolkit.model_tools.snippets import run_snippet
from redstart.toolkit.model_tools.tool_calls import (
    TOOLS,
    WORK_TOOLS,
    Arguments,
    get_text,
    normalize_arguments,
    parse_arguments,
)
from redstart.toolkit.model_tools.toolset import ToolResult, Toolset, create_toolset, refuse
from redstart.toolkit.patching.ladder import apply_to_snapshot
from redstart.toolkit.patching.policy import Protection
from redstart.toolkit.patching.reading.parse import parse
from redstart.toolkit.patching.tree_policy import find_tree_violations
from redstart.toolkit.prompts.sections import format_test_output
from redstart.toolkit.suites.execute import SuiteRun, run_suite

MOST_IDS = 50
"""Tests of one run; further ones are not run."""
MAX_RESULT = 8000
DETAILED = 4
"""Failing tests that are shown in full after a run."""
MAX_OUTPUT = 1000
"""Bytes of what a failing test printed to each stream."""
LONGEST_WHY = 400

_NOTHING_CHANGED = "nothing differs from the original code: there is nothing to submit"
_GO_ON = "Call a tool, or submit your copy."


class ProjectCopy:
    """A copy of the run's workspace. Each execution runs in a fresh copy of the tree as it is then."""

    def __init__(self, run: RunState, ports: Ports, target_ids: Sequence[str]) -> None:
        self._run, self._ports, self._target_ids = run, ports, tuple(target_ids)
        self._earlier_trees: list[Snapshot] = []
        self._toolset: tuple[str, Toolset] | None = None
        self.snapshot = run.workspace
        self.is_submitted = False
        self.why = ""
        self.test_change = ""
        self.claim: NotThisCode | None = None
        """The failing tests that the model sets aside."""
        self.tools = (*TOOLS, *(tool for tool in WORK_TOOLS if may_set_aside(run) or tool.name != "not_this_code"))

    @property
    def has_changed(self) -> bool:
        """Whether the copy differs from the original code."""
        return self.snapshot.tree != self._run.base.tree

    async def serve(self, call: ToolCall) -> ToolResult:
        """Answer any call with a result of bounded size. Raises what the sandbox raises."""
        raw_arguments = parse_arguments(call)
        if raw_arguments is None:
            return refuse("the arguments are no JSON object")
        arguments = normalize_arguments(call.name, raw_arguments)
        match call.name:
            case "edit":
                result = self._edit(arguments)
            case "run_tests":
                result = await self._run_tests(arguments)
            case "run":
                result = await self._run_snippet(get_text(arguments, "snippet"))
            case "diff":
                result = self._show_diff()
            case "undo":
                result = self._undo()
            case "not_this_code":
                result = self._set_aside(arguments)
            case "submit":
                result = self._submit(get_text(arguments, "why"))
            case _:
                result = self._get_toolset().serve(call)
        return result._replace(source=clip(result.source, 300), text=clip(result.text, MAX_RESULT))

    async def take_text(self, text: str) -> str:
        """Use an answer without tool calls: edits in it are applied and submitted; other text ends the work."""
        if probe := probes.find_probe(text):
            result = await self._probe(probe.probe)
            return wrap_untrusted(result.source or "probe", result.text)
        if may_set_aside(self._run) and (claim := find_not_this_code(text, self._target_ids)):
            self.claim, text = claim, claim.remaining_text
        parsed = parse(text)
        if parsed.edits:
            # The tests of a new program are written from its goal alone: no patch may propose to change them.
            self.test_change = "" if self._run.spec.task.makes_program else parsed.test_change
            result = self._apply(parsed.edits)
            if result.refused:
                return f"Your edits were not applied.\n{wrap_untrusted('edits', result.text)}\n{_GO_ON}"
        if not self.has_changed and self.claim is None:
            return f"Nothing has been changed yet. {_GO_ON}"
        self._submit(parsed.reason or text.strip())
        return ""

    def _get_toolset(self) -> Toolset:
        """Return the toolset that looks at the copy as it is now."""
        if self._toolset is None or self._toolset[0] != self.snapshot.tree:
            self._toolset = (self.snapshot.tree, create_toolset(self._run, self._ports, self.snapshot))
        return self._toolset[1]

    def _edit(self, arguments: Arguments) -> ToolResult:
        path, search = get_text(arguments, "path"), get_text(arguments, "search")
        if arguments.get("delete") is True:
            return self._delete(path)
        if search.strip():
            return self._apply(
                (Edit(kind=EditKind.block, path=path, search=search, text=get_text(arguments, "replace")),)
            )
        if "text" not in arguments:
            return refuse("give `search` and `replace`, or the whole `text` of the file")
        return self._apply((Edit(kind=EditKind.whole, path=path, text=get_text(arguments, "text")),))

    def _delete(self, path: str) -> ToolResult:
        if path not in self._ports.trees.list_files(self.snapshot):
            return refuse(f"there is no file {clip(path, 200)}")
        return self._change(self._ports.trees.write(self.snapshot, {path: None}))

    def _apply(self, edits: Sequence[Edit]) -> ToolResult:
        result = apply_to_snapshot(self._ports.trees, self.snapshot, edits)
        if result.snapshot is None:
            return refuse("\n".join(reject.words for reject in result.rejects))
        return self._change(result.snapshot)

    def _change(self, changed: Snapshot) -> ToolResult:
        """Take over a changed tree if the whole change, from the original code on, is allowed."""
        trees, run = self._ports.trees, self._run
        violations = find_tree_violations(trees, run.spec, run.base, changed, trees.diff(run.base, changed))
        if self.test_change:
            violations = tuple(item for item in violations if item.protection is not Protection.test)
        if violations:
            return refuse("\n".join(f"{clip(item.path, 200)}: {item.reason}" for item in violations[:5]))
        diff = trees.diff(self.snapshot, changed).decode(errors="replace")
        self._earlier_trees.append(self.snapshot)
        self.snapshot = changed
        return ToolResult("edited", diff)

    def _undo(self) -> ToolResult:
        if not self._earlier_trees:
            return refuse("there is no edit to take back")
        undone, self.snapshot = self.snapshot, self._earlier_trees.pop()
        return ToolResult("undone", self._ports.trees.diff(undone, self.snapshot).decode(errors="replace"))

    def _show_diff(self) -> ToolResult:
        diff = self._ports.trees.diff(self._run.base, self.snapshot).decode(errors="replace")
        return ToolResult("everything that was changed", diff or "nothing differs from the original code")

    def _set_aside(self, arguments: Arguments) -> ToolResult:
        if not may_set_aside(self._run):
            return refuse("every failing test has to pass in this run")
        names = "\n".join(_read_ids(arguments))
        claim = find_not_this_code(f"NOT THIS CODE: {names}\n\n{get_text(arguments, 'reason')}\n", self._target_ids)
        if claim is None:
            return refuse("none of these is among the tests that must pass")
        self.claim = claim
        text = "Fix the others, or submit if all others pass. A person may decide otherwise."
        return ToolResult(f"set aside {format_count(len(claim.ids), 'failing test')}", text)

    def _submit(self, why: str) -> ToolResult:
        if not self.has_changed and self.claim is None:
            return refuse(_NOTHING_CHANGED)
        self.is_submitted, self.why = True, clip(why, LONGEST_WHY)
        return ToolResult("submitted", "the copy is checked and tested in full now")

    async def _run_tests(self, arguments: Arguments) -> ToolResult:
        if arguments.get("all") is True:
            return await self._run_suite((), "the whole suite")
        ids = _read_ids(arguments) or self._target_ids
        return await self._run_suite(ids[:MOST_IDS], format_count(len(ids[:MOST_IDS]), "test"))

    async def _run_suite(self, ids: Sequence[str], description: str) -> ToolResult:
        run, ports = self._run, self._ports
        ports.announce(f"{description}, asked for by the model", tests=len(ids))
        sign_case = partial(sign, is_source=lambda _: False)
        suite_run = await run_suite(ports.sandbox, ports.blobs, run.suited, self.snapshot, sign=sign_case, ids=ids)
        output = ports.blobs.get(suite_run.report.output).decode(errors="replace")
        return ToolResult(f"{format_count(len(suite_run.cases), 'test')} run", _describe_suite_run(suite_run, output))

    async def _run_snippet(self, snippet: str) -> ToolResult:
        return await run_snippet(self._run.suited, self._ports, self.snapshot, snippet)

    async def _probe(self, probe: Probe) -> ToolResult:
        if probe.ids:
            return await self._run_suite(probe.ids[:MOST_IDS], format_count(len(probe.ids[:MOST_IDS]), "test"))
        return await self._run_snippet(probe.snippet)


def may_set_aside(run: RunState) -> bool:
    """Return whether the model may say that a failing test is not this code's fault."""
    return run.spec.set_aside_policy.allows and not run.spec.asks.brief


def _describe_suite_run(suite_run: SuiteRun, output: str) -> str:
    """Describe a run for the model: the counts, the first failing tests in full, the others by ID."""
    cases = suite_run.cases
    failing = [case for case in cases if case.is_red]
    if not cases:
        return f"{suite_run.report.fault or 'no test was run'}\nit printed:\n{clip(output.strip(), MAX_RESULT // 2)}"
    counts = suite_run.report.counts
    skipped = f", {counts.skipped} skipped" if counts.skipped else ""
    lines = [f"{counts.passed} passed, {len(failing)} failed{skipped}"]
    lines += [_describe_case(case) for case in failing[:DETAILED]]
    lines += [f"{case.id}: {clip(case.message, 150)}" for case in failing[DETAILED : DETAILED + 20]]
    if len(failing) > DETAILED + 20:
        lines.append(f"({len(failing) - DETAILED - 20} more failing tests)")
    return "\n".join(lines)


def _describe_case(case: Case) -> str:
    """Describe a failing test with its traceback and, as in the first question, with what it printed."""
    parts = (f"\n{case.id}: {clip(case.message, 500)}", clip(case.detail, 1600), format_test_output(case, MAX_OUTPUT))
    return "\n".join(part for part in parts if part)


def _read_ids(arguments: Arguments) -> tuple[str, ...]:
    """Read test IDs, written one per line or as a list."""
    value = arguments.get("ids")
    items = (
        value.splitlines() if isinstance(value, str) else cast("list[object]", value if isinstance(value, list) else [])
    )
    ids = (item.strip() for item in items if isinstance(item, str))
    return tuple(dict.fromkeys(item for item in ids if item and "\0" not in item and len(item) <= 1000))
