"""Ask for edits or a probe in one answer, and in the same call for a reflection on the previous attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import takewhile

from redstart.core.change import Edit, EditKind, EditList, FitCounts, Patch, PatchProblem, RejectedEdit
from redstart.core.chat import Answer, AnswerFault, Ask, Message, Tier
from redstart.core.context import Context
from redstart.core.frozen import clip
from redstart.core.learning import RecalledCard, Reflection
from redstart.core.progress import Strategy
from redstart.core.run import PROBES, AttemptSummary, RunState
from redstart.ports.bundle import Ports
from redstart.steps.patch.failing_tests import build_failing_section
from redstart.steps.patch.project_sections import build_code_section, build_project_sections
from redstart.steps.patch.workbench import may_set_aside
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.honesty.verdict.baseline import list_failing_cases, load_targets
from redstart.toolkit.honesty.verdict.set_aside import with_set_aside
from redstart.toolkit.learning.failures import KnownOfFailure, recall_for_attempt
from redstart.toolkit.model_tools import probes
from redstart.toolkit.model_tools.conversation import converse
from redstart.toolkit.model_tools.not_this_code import NotThisCode, find_not_this_code
from redstart.toolkit.model_tools.toolset import create_toolset
from redstart.toolkit.patching.ladder import find_rejected, list_unchanged
from redstart.toolkit.patching.policy import find_protection
from redstart.toolkit.patching.reading.formats import choose_form
from redstart.toolkit.patching.reading.parse import ParsedPatch, fingerprint, list_paths, parse
from redstart.toolkit.patching.reading.unnamed_blocks import list_returned_files
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answer_types import PatchAnswer, ReflectingPatchAnswer
from redstart.toolkit.prompts.answers import ParsedAnswer, build_schema, read_json
from redstart.toolkit.prompts.ask_model import repair_answer, repair_note
from redstart.toolkit.prompts.edit_forms import (
    build_whole_files_section,
    describe_brief_form,
    describe_form,
    find_often_rejected,
)
from redstart.toolkit.prompts.fit_window import fit_messages
from redstart.toolkit.prompts.projects import describe_brief_program_answer, describe_project
from redstart.toolkit.prompts.render import format_section
from redstart.toolkit.prompts.sections import (
    build_failed_before_section,
    build_reflections_section,
    build_rejected_section,
    request_to_reflect,
)

_UNEDITED_BASE = "They apply to the code as shown above, where none of the earlier edits has been made."
_DRAFT = "They apply to the code as shown above, where the last attempt's edits have been made."
_KEPT = (
    "They apply to the code as shown above, which holds the edits of attempt {number}: those fixed some tests, broke "
    "none and stay."
)
_AGAIN_UNCHANGED = "Your last answer gave the file back as it was. Something in it must change to make the test pass."
ANSWER = 4096
"""Maximum tokens of an answer."""
RETRY_TEMPERATURE = 0.6
"""The temperature from the second attempt on: at 0, a model gives much the same wrong answer again."""
FREELY = 0.9
"""The temperature when another idea is asked for. A small model would get lost."""
AFTER_UNCHANGED = (RETRY_TEMPERATURE, 0.75, FREELY)
"""The temperature after one, two and more attempts in a row that changed nothing: the same file must not come again."""
_NO_PROBE = f"no more than {PROBES} probes are run: give edits"
_NO_LOOK = "the model asked for one more look instead of an answer, and none was left"


async def patch_in_one_answer(run: RunState, ports: Ports) -> Patch:
    # This comes before any other recorded input: if a record differs, it and all later ones of the step are discarded.
    recalled = await recall_for_attempt(run, ports)
    form = _choose_form(run, await ports.forms.count_fits(), partial(ports.trees.read, run.workspace))
    messages = await _build_messages(run, ports, form, recalled)
    conversation = await converse(
        ports.model,
        _build_request(run, messages),
        create_toolset(run, ports),
        run.spec.looks,
        is_answer=lambda text: bool(
            probes.find_probe(text) or _find_not_this_code(run, ports, text) or _parse_edits(run, ports, text).edits
        ),
        note=lambda tool_call, result: ports.note(look=tool_call, served=result),
    )
    outcome = await repair_answer(
        ports.model,
        conversation.ask,
        conversation.answer,
        partial(_check_answer, run, ports),
        note=repair_note,
        repairs=1,
    )
    answer = outcome.value or outcome.answer
    recalled_ids = {
        "recalled": tuple(fix.card.id for fix in recalled.fixes),
        "failed_before": tuple(failure.record.id for failure in recalled.failures),
    }
    details = {"looks": conversation.tool_call_count, "model": answer.model, "form": form}
    return _read(run, ports, answer).model_copy(update={**details, **recalled_ids})


def _build_request(run: RunState, messages: tuple[Message, ...]) -> Ask:
    asks = run.spec.asks
    return Ask(
        question="patch",
        tier=Tier.fast if asks.fast else Tier.strong,
        messages=messages,
        max_tokens=asks.answer(ANSWER),
        temperature=_temperature(run),
        # A model that must follow a schema could not call a tool.
        shape=build_schema(_choose_shape(run)) if _is_shaped(run) else None,
        stuck=run.count_strategy_uses(Strategy.stronger) > 0,
    )


def _is_again(run: RunState) -> bool:
    """Return whether there was an earlier attempt at the fix. Probes do not count."""
    return len(run.history) > run.probes


def _choose_shape(run: RunState) -> type[PatchAnswer]:
    return ReflectingPatchAnswer if _is_again(run) and not run.spec.asks.brief else PatchAnswer


def _temperature(run: RunState) -> float:
    if not _is_again(run):
        return run.spec.asks.first_temperature
    if run.spec.asks.ends_unchanged and (unchanged_count := _count_unchanged(run)):
        return AFTER_UNCHANGED[min(unchanged_count, len(AFTER_UNCHANGED)) - 1]
    is_free = run.turn is not None and run.turn.strategy in (Strategy.hypothesis, Strategy.plan)
    return FREELY if is_free and not run.spec.asks.brief else RETRY_TEMPERATURE


def _count_unchanged(run: RunState) -> int:
    """Count the last attempts in a row that changed nothing."""
    attempts = reversed([entry for entry in run.history if not entry.probe])
    return sum(1 for _ in takewhile(lambda entry: entry.problem is PatchProblem.unchanged, attempts))


def _choose_form(run: RunState, counts: Mapping[EditKind, FitCounts], read: Callable[[str], bytes | None]) -> EditKind:
    """Choose the form that fits best. If its edits did not fit this run's files, choose another that the question can
    name."""
    abandoned = {entry.seen.form for entry in run.history if entry.turn and entry.turn.strategy is Strategy.form} - {
        None
    }
    if abandoned and (run.spec.asks.brief or _is_shaped(run)):
        abandoned |= {EditKind.envelope, EditKind.diff} if _is_shaped(run) else {EditKind.envelope}
    excluded = [kind for kind in EditKind if kind in abandoned]
    return choose_form(counts, _get_max_lines(run, read), run.spec.asks.edits, excluded=excluded)


def _is_shaped(run: RunState) -> bool:
    # A small program is requested as one file: as a JSON string it would lose its line breaks.
    is_one_file = run.spec.asks.brief and run.spec.task.makes_program
    return run.spec.asks.shaped and not run.spec.looks and not is_one_file


def _parse_edits(run: RunState, ports: Ports, text: str) -> ParsedPatch:
    """Parse the edits of an answer if they change something: small models often return a file unchanged."""
    parsed = _parse_answer(run, ports, text)
    trees, workspace = ports.trees, run.workspace
    if parsed.edits:
        unchanged_paths = list_unchanged(
            parsed.edits, lambda path: trees.read(workspace, path), trees.list_files(workspace)
        )
    else:
        unchanged_paths = list_returned_files(text, _read_shown_files(run, ports))
    if not unchanged_paths:
        return parsed
    fault = (
        f"the answer gives {clip(', '.join(unchanged_paths), 200)} back as it was: "
        "something in it must change to make the failing test pass"
    )
    return parsed._replace(edits=(), fault=fault, unchanged=True)


def _parse_answer(run: RunState, ports: Ports, text: str) -> ParsedPatch:
    """Parse the answer in the requested schema, else in any known form."""
    answer = read_json(text, ReflectingPatchAnswer) if _is_shaped(run) else None
    if answer is None or not answer.edits:
        return parse(text, _read_shown_files(run, ports))
    edits = tuple(
        Edit(
            kind=EditKind.block if edit.search.strip() else EditKind.whole,
            path=edit.path,
            search=edit.search,
            text=edit.text,
            number=number,
        )
        for number, edit in enumerate(answer.edits, 1)
    )
    parsed_reflection = Reflection(
        root_cause=clip(answer.root_cause, 400),
        what_failed=clip(answer.what_failed, 400),
        try_next=clip(answer.try_next, 400),
    )
    reflection = None if parsed_reflection == Reflection() else parsed_reflection
    return ParsedPatch(edits, clip(answer.why, 400), reflection, test_change=clip(answer.test_change, 400))


def _read_shown_files(run: RunState, ports: Ports) -> dict[str, str]:
    """Read the files that were shown at least in part and that a patch may change."""
    paths = {chunk.path for chunk in run.now.retrieve.chunks} if run.now.retrieve else set[str]()
    editable_paths = (path for path in sorted(paths) if not find_protection(path, run.spec.guarded))
    return {path: (ports.trees.read(run.workspace, path) or b"").decode(errors="replace") for path in editable_paths}


def _check_answer(run: RunState, ports: Ports, answer: Answer) -> ParsedAnswer[Answer]:
    """Return the answer if it holds edits or a probe, else the reason why it is unusable.

    An answer that changes nothing counts as one if the attempt ends with it: a small model that is told so gives the
    same file once more.
    """
    parsed = _parse_edits(run, ports, answer.text)
    probe = probes.find_probe(answer.text) if run.spec.looks else None
    ends = parsed.unchanged and run.spec.asks.ends_unchanged
    is_good = answer.fault is None and bool(
        parsed.edits or probe or ends or _find_not_this_code(run, ports, answer.text)
    )
    return ParsedAnswer(answer if is_good else None, _NO_LOOK if answer.calls else parsed.fault)


async def _build_messages(run: RunState, ports: Ports, form: EditKind, recalled: KnownOfFailure) -> tuple[Message, ...]:
    person_messages = await ports.person.read_messages()
    token_limit = run.spec.asks.compute_question_tokens(ANSWER)
    new, brief = run.spec.task.makes_program, run.spec.asks.brief
    if brief:
        prompt_sections = (
            _build_new_program_sections(run, ports, person_messages)
            if new
            else _build_brief_sections(run, ports, form, person_messages)
        )
    else:
        prompt_sections = _build_full_sections(run, ports, form, person_messages)
    if not (brief and new):
        prompt_sections["lessons"] = sections.build_fixes_section(_list_fixes(run, recalled)[: 1 if brief else None])
    prompt_sections["failed"] = build_failed_before_section(recalled.failures[: 1 if brief else None], run.spec.repo)
    name = ("brief/create" if new else "brief/patch") if brief else "create/patch" if new else "patch"
    return fit_messages(ports.note, name, token_limit, **prompt_sections)


def _list_fixes(run: RunState, recalled: KnownOfFailure) -> tuple[RecalledCard, ...]:
    """List earlier fixes, each once: first those for the last failure, then those for the bug."""
    new = {fix.card.id for fix in recalled.fixes}
    plan_fixes = run.now.plan.recalled if run.now.plan else ()
    return (*recalled.fixes, *(item for item in plan_fixes if item.card.id not in new))


def _build_full_sections(
    run: RunState, ports: Ports, form: EditKind, person_messages: tuple[str, ...]
) -> dict[str, str]:
    """Build the sections of the full question."""

    def read(path: str) -> bytes | None:
        return ports.trees.read(run.workspace, path)

    def read_blob(name: str) -> str:
        return ports.blobs.get(name).decode(errors="replace")

    cases = list_failing_cases(run, ports.blobs)
    template = request_to_reflect(run.history, as_json=_is_shaped(run))
    instructions = [template.format(where=_describe_workspace(run)), sections.format_advice(run.turn)]
    misfits = find_often_rejected(run.history) if run.count_strategy_uses(Strategy.form) and not _is_shaped(run) else ()
    return {
        "answer": describe_form(form, as_json=_is_shaped(run), may_set_aside=_may_set_aside(run)),
        "goal": sections.build_goal_section(run.spec.goal, run.spec.program_goal),
        "hint": sections.build_hint_section(run.spec.hint, person_messages),
        **build_project_sections(run, read),
        "plan": sections.plan(run.now.plan),
        "failing": build_failing_section(run, ports, cases, run.now.retrieve),
        "code": build_code_section(run, read),
        "findings": sections.build_findings_section(run.now.audit),
        "advice": sections.build_lessons_section(run.taught),
        "tried": sections.build_tried_section(_list_undone_attempts(run), read_blob),
        "rejected": build_rejected_section(_find_misfits(run, ports)),
        "probed": sections.build_probes_section(run.history, read_blob),
        "looking": sections.build_tools_section(
            run.spec.looks, max(PROBES - run.probes, 0), probes.get_snippet_language(run.spec.suite)
        ),
        "form": build_whole_files_section(misfits, read),
        "ask": format_section("Now", *instructions) if _is_again(run) else "",
    }


def _describe_workspace(run: RunState) -> str:
    """Say which earlier edits the code shown to the model holds."""
    if run.draft is None:
        return _UNEDITED_BASE
    is_kept_fix = run.kept_attempt is not None and not run.spec.task.makes_program
    return _KEPT.format(number=run.kept_attempt.number) if run.kept_attempt and is_kept_fix else _DRAFT


def _list_undone_attempts(run: RunState) -> list[AttemptSummary]:
    """List the attempts whose edits the workspace of a fix does not hold."""
    kept = None if run.spec.task.makes_program else run.kept_attempt
    return [entry for entry in run.history if entry is not kept]


def _build_brief_sections(
    run: RunState, ports: Ports, form: EditKind, person_messages: tuple[str, ...]
) -> dict[str, str]:
    """Build the sections for a small model: the code that may change, the failures, and what was wrong so far."""
    files = _read_shown_files(run, ports)
    context = run.now.retrieve or Context()
    chunks = tuple(chunk for chunk in context.chunks if chunk.path in files)[
        : 1 + run.count_strategy_uses(Strategy.wider)
    ]
    tried_section = sections.build_brief_tried_section(
        _list_undone_attempts(run), lambda name: ports.blobs.get(name).decode(errors="replace")
    )
    path, omits_documentation = chunks[0].path if chunks else "path/to/file.py", run.spec.asks.omits_documentation
    return {
        "answer": describe_brief_form(form, path, as_json=_is_shaped(run), omits_documentation=omits_documentation),
        "goal": sections.build_goal_section(run.spec.goal),
        "hint": sections.build_hint_section(run.spec.hint, person_messages),
        "code": sections.build_code_section(
            context.model_copy(update={"chunks": chunks}), lambda path: ports.trees.read(run.workspace, path)
        ),
        "failing": sections.build_brief_failing_section(list_failing_cases(run, ports.blobs)),
        "advice": sections.build_lessons_section(run.taught),
        "tried": tried_section,
        "rejected": build_rejected_section(_find_misfits(run, ports), limit=1),
        "ask": _build_instruction(
            run, _note_unchanged(run) or ("Give another fix than what was tried." if tried_section else "")
        ),
    }


def _find_misfits(run: RunState, ports: Ports) -> tuple[RejectedEdit, ...]:
    """Find the edits of the last attempt that do not fit the current files."""
    last = next((attempt for attempt in reversed(run.history) if not attempt.probe), None)
    if last is None or not last.edits:
        return ()
    edits = EditList.model_validate_json(ports.blobs.get(last.edits)).edits
    return find_rejected(edits, partial(ports.trees.read, run.workspace), ports.trees.list_files(run.workspace))


def _build_instruction(run: RunState, instruction: str) -> str:
    """Tell a small model what to do differently, with the plan if one was made because the run went in circles."""
    is_planned = run.turn is not None and run.turn.strategy is Strategy.plan
    return "\n".join(
        filter(None, (sections.plan(run.now.plan) if is_planned else "", instruction, sections.format_advice(run.turn)))
    )


def _build_new_program_sections(run: RunState, ports: Ports, person_messages: tuple[str, ...]) -> dict[str, str]:
    """Build the sections for a small model that writes a new program: its tests, and the code so far."""

    def show_files(title: str, paths: Iterable[str]) -> str:
        texts = ((path, ports.trees.read(run.workspace, path) or b"") for path in sorted(paths))
        return format_section(title, *(wrap_untrusted(path, text.decode(errors="replace")) for path, text in texts))

    spec, reproduction = run.spec, run.now.reproduce
    draft_paths = ports.trees.list_files(run.workspace) if run.draft else ()
    return {
        "answer": describe_brief_program_answer(spec),
        "goal": sections.build_goal_section(spec.goal, spec.program_goal),
        "package": describe_project(spec, run.packages),
        "hint": sections.build_hint_section(spec.hint, person_messages),
        "tests": show_files("The tests", reproduction.tests if reproduction else ()),
        "code": show_files(
            "The program so far", [path for path in draft_paths if not find_protection(path, spec.guarded)]
        ),
        "failing": sections.build_brief_failing_section(list_failing_cases(run, ports.blobs)) if draft_paths else "",
        "tried": build_reflections_section(run.history),
        "ask": _build_instruction(
            run, _note_unchanged(run) or ("Give another program than what was tried." if run.history else "")
        ),
    }


def _note_unchanged(run: RunState) -> str:
    """Tell a small model that its last attempt changed nothing; the list of tried patches does not show that."""
    return _AGAIN_UNCHANGED if run.history and run.history[-1].problem is PatchProblem.unchanged else ""


def _may_set_aside(run: RunState) -> bool:
    """Return whether the model may say that a failing test is not this code's fault."""
    return may_set_aside(run) and not _is_shaped(run)


def _find_not_this_code(run: RunState, ports: Ports, text: str) -> NotThisCode | None:
    return find_not_this_code(text, load_targets(run, ports.blobs)) if _may_set_aside(run) else None


def _read(run: RunState, ports: Ports, answer: Answer) -> Patch:
    """Convert the answer to a patch, with the failing tests that it sets aside."""
    claim = _find_not_this_code(run, ports, answer.text) if answer.fault is None else None
    if claim is None:
        return _read_proposal(run, ports, answer)
    rest = _read_proposal(run, ports, answer.model_copy(update={"text": claim.remaining_text, "calls": ()}))
    rest = rest.model_copy(update={"answer": ports.blobs.put(answer.text.encode())})
    targets = load_targets(run, ports.blobs)
    return with_set_aside(rest, claim.ids, claim.reason, claim.ignored, targets, ports.blobs)


def _read_proposal(run: RunState, ports: Ports, answer: Answer) -> Patch:
    """Convert the answer to a patch: edits, else a probe if the run offers them, else nothing, with the reason."""
    answer_blob = ports.blobs.put(answer.text.encode())
    if answer.fault is AnswerFault.budget:
        fault = "the model was not asked, or not until it answered: this call is over budget"
        return Patch(answer=answer_blob, problem=PatchProblem.over_budget, fault=fault)
    if answer.fault is not None:
        return Patch(answer=answer_blob, fault=f"the model's answer could not be used: {answer.fault.value}")
    probe_match = probes.find_probe(answer.text) if run.spec.looks else None
    parsed = _parse_edits(run, ports, probe_match.remaining_text if probe_match else answer.text)
    if parsed.edits:
        return Patch(
            edits=ports.blobs.put(EditList(edits=parsed.edits).model_dump_json().encode()),
            answer=answer_blob,
            files=tuple(clip(path, 200) for path in list_paths(parsed.edits)[:20]),
            fingerprint=fingerprint(parsed.edits),
            why=parsed.reason,
            test_change=parsed.test_change,
            reflection=parsed.reflection,
        )
    if probe_match is None or run.probes >= PROBES:
        fault = _NO_PROBE if probe_match else _NO_LOOK if answer.calls else parsed.fault
        problem = PatchProblem.unchanged if parsed.unchanged and fault == parsed.fault else None
        return Patch(answer=answer_blob, reflection=parsed.reflection, problem=problem, fault=fault)
    return Patch(
        probe=ports.blobs.put(probe_match.probe.model_dump_json().encode()),
        answer=answer_blob,
        fingerprint=probes.fingerprint(probe_match.probe),
        why=parsed.reason,
        reflection=parsed.reflection,
    )


def _get_max_lines(run: RunState, read: Callable[[str], bytes | None]) -> int:
    """Return the number of lines of the longest file that is shown to the model, at least in part."""
    shown_paths = {chunk.path for chunk in run.now.retrieve.chunks} if run.now.retrieve else set[str]()
    return max((len((read(path) or b"").splitlines()) for path in shown_paths), default=0)
