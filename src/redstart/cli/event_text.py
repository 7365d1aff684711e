"""Describe events in words for the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redstart.app.show import reflection_lines
from redstart.core.events import Event
from redstart.core.frozen import format_count
from redstart.core.learning import Reflection

Data = dict[str, Any]

WORTH_SAYING = 90.0
"""Minimum seconds of verification to announce."""
LONGEST = 600
"""Maximum number of characters of a step's line; `redstart show` has the whole text."""


def describe_step(event: Event) -> str:
    """Describe a finished step in one line."""
    render = {
        "reproduce": _reproduce,
        "plan": _plan,
        "retrieve": _retrieve,
        "audit": _describe_findings,
        "patch": _patch,
        "apply": _apply,
        "check": _describe_findings,
        "test": _test,
        "reflect": _reflect,
        "remember": _remember,
        "decide": _decide,
    }[event.name]
    return _shorten(render(event.data))


def _shorten(text: str) -> str:
    """Return the text on one line. A long text ends after its last sentence, or word, that fits."""
    line = " ".join(text.split())
    if len(line) <= LONGEST:
        return line
    head = line[:LONGEST]
    end = max(head.rfind(". ") + 1, head.rfind("; "))
    return f"{head[:end] if end > LONGEST // 2 else head.rpartition(' ')[0]} …"


def choose_tone(event: Event) -> str:
    """Return how to show the line: `good`, `bad` or empty."""
    data = event.data
    if event.name == "test":
        return "good" if data["honest_green"] else "" if data["probe"] else "bad"
    if event.name == "reproduce":
        return "bad" if data["red"] else ""
    failed = event.name == "apply" and not data["ok"], event.name == "check" and data["findings"]
    return "bad" if any(failed) else ""


def is_outcome(event: Event) -> bool:
    """Return whether the event only states how the run ends, as its headline does."""
    return event.name == "decide" and event.data["action"] not in ("retry", "spawn") and "." not in event.run


def describe_sandbox(tier: str, lacks: Sequence[str] = ()) -> str:
    """Describe where the tests run, and what the sandbox lacks on this machine."""
    return f"sandbox {tier} ({', '.join(lacks)})" if lacks else f"sandbox {tier}"


def _reproduce(data: Data) -> str:
    if data["trouble"] == "environment":
        return "the tests cannot run"
    if data["trouble"] == "no_tests":
        return "no tests to start from"
    if data["trouble"] == "no_usable_test":
        return data.get("remedy") or "the model wrote no usable test"
    if data.get("written"):
        count = data["written"]
        return (
            f"{format_count(count, 'test')} written, {'it fails' if count == 1 else 'all fail'}: "
            f"there is no program yet"
        )
    test_counts = describe_tests(data["red"], data["passed"], data["skipped"])
    names = [id_.rpartition("::")[2] for id_ in data["targets"][:2]]
    remaining = data["target_count"] - len(names)
    targets = f"to fix: {', '.join(names)}{f' and {remaining:,} more' if remaining > 0 else ''}" if names else ""
    set_aside = [*data["grounds"][:1], *(f"flaky {id_}" for id_ in data["flaky"][:1])]
    parts = (
        test_counts,
        targets,
        f"set aside: {'; '.join(set_aside)}" if set_aside else "",
        _describe_already_red(data.get("already_red", 0)),
        _describe_confidence(data.get("sure", ""), data.get("sure_why", "")),
        _describe_forecast(data["forecast"]),
    )
    return "; ".join(filter(None, parts))


def _describe_already_red(count: int) -> str:
    """Describe the failing tests that the user's branch did not break."""
    others = f"{format_count(count, 'other test')} failed before this branch" if count else ""
    return f"{others}: --all-red fixes them too" if others else ""


def _describe_confidence(level: str, reason: str) -> str:
    """Describe how sure the model is that its test matches the issue."""
    return f"confidence that the test matches the issue: {level}{f' ({reason})' if reason else ''}" if level else ""


def _describe_forecast(seconds: float) -> str:
    """Describe the expected duration of a verification that takes long."""
    return f"verifying a fix will take about {seconds / 60:.0f} min" if seconds >= WORTH_SAYING else ""


def describe_tests(failed: int, passed: int, skipped: int) -> str:
    """Format the number of tests and their outcomes."""
    parts = (
        f"{failed:,} fail{'s' if failed == 1 else ''}" if failed else "",
        f"{passed:,} pass{'es' if passed == 1 else ''}" if passed else "",
        f"{skipped:,} skipped" if skipped else "",
    )
    return f"{format_count(failed + passed + skipped, 'test')}: {', '.join(filter(None, parts))}".removesuffix(": ")


def _plan(data: Data) -> str:
    if data["recalled"]:
        match_text = "this failure" if "signature" in data["sources"] else "this kind of failure"
        text = f"recalled {format_fix_count(len(data['recalled']))} for {match_text}"
    elif data["summary"] and data.get("patterns"):
        text = f"{data['summary']} (considered {format_count(len(data['patterns']), 'earlier plan')} for similar goals)"
    else:
        text = data["summary"] or data["fault"] or ("" if data.get("shown") else "no earlier fix matches this failure")
    packages = [f"needs {', '.join(data['packages'])}"] if data.get("packages") else []
    return "; ".join(filter(None, (text.rstrip(".") if packages else text, *packages, *_describe_lessons(data))))


def _describe_lessons(data: Data) -> list[str]:
    """Describe the lessons shown to the run, and those withheld to measure their effect."""
    shown_count, withheld = len(data.get("shown", ())), len(data.get("withheld", ()))
    effect = "its effect" if withheld == 1 else "their effect"
    return [
        *([f"{format_count(shown_count, 'lesson')} shown"] if shown_count else []),
        *([f"{format_count(withheld, 'lesson')} withheld to measure {effect}"] if withheld else []),
    ]


def _retrieve(data: Data) -> str:
    files = data["files"]
    more_text = f" and {format_count(len(files) - 3, 'more file')}" if len(files) > 3 else ""
    return ", ".join(files[:3]) + more_text or "no code yet"


def _describe_findings(data: Data) -> str:
    if data["fault"]:
        return data["fault"]
    count = data["findings"]
    if count:
        return f"{format_count(count, 'finding')}: {data['first']}"
    if data.get("packages"):
        return f"asks to install {', '.join(data['packages'])}"
    return "no findings; packages installed" if data.get("installed") else "no findings"


def _patch(data: Data) -> str:
    calls = data["looks"]
    suffix = f" (after {format_count(calls, 'tool call')})" if calls else ""
    if data["probe"]:
        return f"the model asks to run a snippet{suffix}"
    text = data["fault"] or data["why"] or ", ".join(data["files"])
    if claim := data.get("set_aside"):
        text = f"{text}; {format_count(claim['tests'], 'failing test')} not caused by this code: {claim['reason']}"
        text = text if data["files"] else text.partition("; ")[2]
    return text + suffix


def _apply(data: Data) -> str:
    if data["ok"]:
        return f"+{data['added']} -{data['removed']}"
    return f"{'refused' if data['refused'] else 'does not apply'}: {'; '.join(data['reasons'][:2])}"


def _test(data: Data) -> str:
    if data["probe"]:
        return "ran the snippet on the current code"
    if data["honest_green"]:
        reruns, passed = data["repeats"], data["passed"]
        parts = (
            f"fixed {format_count(data['fixed'], 'test')}",
            f"{passed:,} of {format_count(passed + data['red'], 'test')} {'passes' if passed == 1 else 'pass'}",
            f"passed {reruns} of {format_count(reruns, 'rerun')}" if reruns else "",
            _describe_left_out(data.get("dropped", 0)) if data["shrunk"] else "",
        )
        return "; ".join(filter(None, parts))
    labels = {
        "newly_red": "newly failing",
        "missing": "missing",
        "skipped_now": "newly skipped",
        "flaky": "flaky",
        "set_aside_changed": "set aside but changed",
        "green_without": "passing without the patch",
    }
    test_counts = describe_tests(data["red"], data["passed"], data["skipped"])
    return "; ".join((test_counts, *(f"{data[key]} {name}" for key, name in labels.items() if data.get(key))))


def _describe_left_out(hunks: int) -> str:
    """Say how many hunks were left out. Events of earlier versions do not have the number."""
    return f"left {format_count(hunks, 'hunk')} out of the patch" if hunks else "left parts of the patch out"


def _reflect(data: Data) -> str:
    return next(iter(explain_failure(data)), data["what_failed"])


def explain_failure(data: Data) -> list[str]:
    """Return why an attempt failed, one line per part. Empty if no model was asked."""
    parts = {name: data.get(name, "") for name in Reflection.model_fields}
    reflection = Reflection.model_validate(parts)
    return list(reflection_lines(reflection)) if reflection.explains else []


def list_detail_lines(event: Event) -> list[str]:
    """Return the further lines of a finished step: what it recalled, and why an attempt failed."""
    data: Data = event.data
    if event.name == "reflect":
        return explain_failure(data)[1:]
    if event.name != "patch":
        return []
    explanation = explain_failure(data["reflection"]) if "reflection" in data else []
    recall_lines = (
        [f"recalled {format_fix_count(len(data['recalled']))} for the last failure"] if "recalled" in data else []
    )
    failed = len(data.get("failed_before", ()))
    attempt_lines = (
        [f"the model saw {format_count(failed, 'earlier attempt')} that did not fix this failure"] if failed else []
    )
    return [
        *([f"last attempt: {explanation[0]}", *explanation[1:]] if explanation else []),
        *recall_lines,
        *attempt_lines,
    ]


def format_fix_count(count: int) -> str:
    return "1 earlier fix" if count == 1 else f"{count} earlier fixes"


def _remember(data: Data) -> str:
    saved = [
        *(["a fix card"] if data["card"] else []),
        *(["a lesson"] if data.get("lesson") else []),
        *(["the plan for similar goals"] if data.get("pattern") else []),
    ]
    if saved:
        return f"saved {' and '.join(saved)}"
    return "recorded the failed attempt" if data["failure"] else "nothing to save"


def _decide(data: Data) -> str:
    if data["action"] != "retry":
        return data["reason"]
    base = ", keeping what was gained" if data.get("retry_base") == "patched" else ""
    return f"retrying{base}: {data['reason']}"


def format_warning(event: Event) -> str:
    """Return the warning of an event, or an empty string."""
    return f"warning: {text}" if (text := event.data.get("warning")) else ""


def describe_note(event: Event) -> str:
    """Describe a note that a step gives while it runs."""
    data: Data = event.data
    if "look" in data:
        return f"{'tool call' if data['served'] else 'tool call refused'}: {data['look']}"
    if "test_refused" in data:
        return f"the new test is not usable yet: {data['test_refused']}"
    if "recall_lacks" in data:
        return f"similar earlier fixes were not searched: {data['recall_lacks']}"
    if "discarded" in data:
        return (
            f"{format_count(data['discarded'], 'recorded call')} discarded from {data['since']} on: the "
            f"request has changed"
        )
    if "not_shown" in data:
        return f"left out of the question to fit the model's context window: {', '.join(data['not_shown'])}"
    if "known" in data:
        return f"{format_count(data['known'], 'known finding')} not counted"
    if "silent" in data:
        return f"{data['tool']} reported nothing: {data['silent']}"
    return f"{event.name}: {', '.join(f'{key} {value}' for key, value in data.items())}"
