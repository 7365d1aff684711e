"""Events in the user's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redstart.core.events import Event
from redstart.core.noun import many

Data = dict[str, Any]

WORTH_SAYING = 90.0


def words(event: Event) -> str:
    """What a finished step has to say, in one line."""
    said = {
        "reproduce": _reproduce,
        "plan": _plan,
        "retrieve": _retrieve,
        "audit": _findings,
        "patch": _patch,
        "apply": _apply,
        "check": _findings,
        "test": _test,
        "reflect": _reflect,
        "remember": _remember,
        "decide": _decide,
    }[event.name]
    return said(event.data)


def tone(event: Event) -> str:
    """`good`, `bad` or empty: how the line is to be shown."""
    data = event.data
    if event.name == "test":
        return "good" if data["honest_green"] else "" if data["probe"] else "bad"
    if event.name == "reproduce":
        return "bad" if data["red"] else ""
    failed = event.name == "apply" and not data["ok"], event.name == "check" and data["findings"]
    return "bad" if any(failed) else ""


def sandbox_in_words(tier: str, lacks: Sequence[str] = ()) -> str:
    """Where the tests run, and what that place could not get on this machine."""
    return f"sandbox {tier} ({', '.join(lacks)})" if lacks else f"sandbox {tier}"


def _reproduce(data: Data) -> str:
    if data["trouble"] == "environment":
        return "the tests could not be run"
    if data["trouble"] == "no_tests":
        return data.get("remedy") or "no failing test was found"
    named = [id_.rpartition("::")[2] for id_ in data["targets"][:2]]
    shown = ", ".join(named) + (", …" if data["target_count"] > 2 else "")
    reasons = [*data["grounds"][:1], *(f"flaky {one}" for one in data["flaky"][:1])]
    aside = f"; left aside: {'; '.join(reasons)}" if reasons else ""
    counted = tests_in_words(data["red"], data["passed"], data["skipped"])
    aside += _sure(data.get("sure", ""), data.get("sure_why", ""))
    return f"{counted}{': ' + shown if shown else ''}{aside}{_forecast(data['forecast'])}"


def _sure(level: str, why: str) -> str:
    """How sure the model is that the test it wrote is what was meant."""
    return f"; that this is what was meant is of {level} certainty{f' ({why})' if why else ''}" if level else ""


def _forecast(seconds: float) -> str:
    """Of a proof that one has to wait for."""
    return f"; to prove a green will take about {seconds / 60:.0f} min" if seconds >= WORTH_SAYING else ""


def tests_in_words(red: int, passed: int, skipped: int) -> str:
    """How many tests there are and how they ended before anything was changed."""
    total = red + passed + skipped
    aside = f", {skipped} skipped" if skipped else ""
    return f"{total} {'test' if total == 1 else 'tests'}, {red} red, {passed} green{aside}"


def _plan(data: Data) -> str:
    if data["recalled"]:
        same = "this failure" if "signature" in data["sources"] else "this kind of failure"
        count = len(data["recalled"])
        told = f"recalled {count} earlier fix{'es' if count > 1 else ''} of {same}"
    elif data["summary"] and data.get("patterns"):
        told = f"{data['summary']} (with {many(len(data['patterns']), 'earlier plan')} of a goal like it in view)"
    else:
        told = data["summary"] or data["fault"] or ("" if data.get("shown") else "nothing is known of this failure yet")
    return "; ".join(filter(None, (told, *_lessons(data))))


def _lessons(data: Data) -> list[str]:
    """What the run is told of earlier ones, and what is kept from it so that its worth can be measured."""
    shown, withheld = len(data.get("shown", ())), len(data.get("withheld", ()))
    what = "it is" if withheld == 1 else "they are"
    return [
        *([f"{many(shown, 'lesson')} shown"] if shown else []),
        *([f"{many(withheld, 'lesson')} withheld to measure what {what} worth"] if withheld else []),
    ]


def _retrieve(data: Data) -> str:
    files = data["files"]
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "") or "no code yet"


def _findings(data: Data) -> str:
    if data["fault"]:
        return data["fault"]
    count = data["findings"]
    if count:
        return f"{count} finding{'s' if count > 1 else ''}: {data['first']}"
    if data.get("packages"):
        return f"asks for {', '.join(data['packages'])}"
    return "no findings; packages installed" if data.get("installed") else "no findings"


def _patch(data: Data) -> str:
    looks = data["looks"]
    looked = f" (after {looks} {'look' if looks == 1 else 'looks'} around)" if looks else ""
    if data["probe"]:
        return f"wants something run first{looked}"
    return (data["fault"] or data["why"] or ", ".join(data["files"])) + looked


def _apply(data: Data) -> str:
    if data["ok"]:
        return f"+{data['added']} -{data['removed']}"
    return f"{'refused' if data['refused'] else 'does not apply'}: {'; '.join(data['reasons'][:2])}"


def _test(data: Data) -> str:
    if data["probe"]:
        return "ran what was asked for, on the code as it stands"
    if data["honest_green"]:
        stood = f", stood {data['repeats']} repeats" if data["repeats"] else ""
        shrunk = ", shrunk" if data["shrunk"] else ""
        return f"{data['fixed']} red now green, {data['passed']} passed, none worse{stood}{shrunk}"
    told = {
        "still red": "still_red",
        "newly red": "newly_red",
        "missing": "missing",
        "now skipped": "skipped_now",
        "flaky": "flaky",
        "green without the patch": "green_without",
    }
    return ", ".join(f"{data[key]} {name}" for name, key in told.items() if data[key]) or "not green"


def _reflect(data: Data) -> str:
    return data["what_failed"]


def _remember(data: Data) -> str:
    if data["card"] or data.get("pattern"):
        return "kept what was learned"
    return "noted what failed" if data["failure"] else "nothing to keep"


_TRENDS = {"improving": " (it gets better)", "regressing": " (it gets worse)", "mixed": " (now better, now worse)"}


def _decide(data: Data) -> str:
    course = _TRENDS.get(data.get("trend", ""), "")
    return f"try again{course}: {data['reason']}" if data["action"] == "retry" else data["reason"]


def warning_in_words(event: Event) -> str:
    """What the user is to know before it happens; empty where there is nothing."""
    return f"take care: {said}" if (said := event.data.get("warning")) else ""


def note_in_words(event: Event) -> str:
    """What a step says on its way."""
    if "look" in event.data:
        return f"{'looked at' if event.data['served'] else 'did not show'} {event.data['look']}"
    if "test_refused" in event.data:
        return f"the test is no use yet: {event.data['test_refused']}"
    if "recall_lacks" in event.data:
        return f"earlier fixes were not looked for by their words: {event.data['recall_lacks']}"
    return f"{event.name}: {event.data}"
