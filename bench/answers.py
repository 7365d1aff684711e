"""How malformed answers of weak models are read: those made by kinds (malformed/) and those recorded from a model.

`recovered` is the share of answers that hold what was asked for and were read right, at once or after the repair turn
that was recorded with them; an answer that was made by a kind has no second turn. `wrong` counts values that are not
what the text says, and any value read from a text that says none. `crashes` counts exceptions.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from _figures import at_least, exactly, print_figures, told
from malformed.bases import BASES
from malformed.item import Item
from malformed.reach import REACH
from malformed.refuse import REFUSE
from redstart.core.chat import Answer
from redstart.toolkit.patching.reading.parse import parse
from redstart.toolkit.prompts.answers import read_answer
from redstart.toolkit.prompts.render import render
from redstart.toolkit.prompts.shapes import SHAPES

RECORDED = Path(__file__).parent / "malformed" / "recorded.jsonl"


def made() -> Iterator[Item]:
    """Every kind on every true answer that it fits; of texts that are the same, one."""
    seen: set[tuple[str, str]] = set()
    for kind, maker in (*REACH.items(), *REFUSE.items()):
        for question, answers in BASES.items():
            for number, answer in enumerate(answers):
                one = maker(answer)
                if one is None or (question, one.raw) in seen:
                    continue
                seen.add((question, one.raw))
                yield Item(f"{question} {number}", kind, question, one.raw, one.expected, one.truncated)


def recorded() -> list[Item]:
    rows = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").split("\n") if line]
    return [
        Item(
            row["id"],
            "recorded",
            row["question"],
            row["raw"],
            row["expected"],
            row.get("truncated", False),
            row.get("after", ""),
        )
        for row in rows
    ]


def read(item: Item) -> object:
    """What the text is read as, in the form of `expected`; None where it is refused."""
    if item.question in SHAPES:
        asked = render(item.question)[0].text
        found = read_answer(item.raw, SHAPES[item.question], asked=asked, truncated=item.truncated).value
        return found.model_dump() if found is not None else None
    answer = Answer(text=item.raw, model="recorded")
    edits = () if item.truncated else parse(answer.text).edits
    return [{"path": edit.path, "search": edit.search, "text": edit.text} for edit in edits] or None


def meant(item: Item) -> object:
    """`expected` with the fields that it may leave out."""
    if item.expected is None or item.question not in SHAPES:
        return item.expected
    return SHAPES[item.question].model_validate(item.expected).model_dump()


def judge(item: Item) -> str:
    try:
        value = read(item)
    except Exception as error:  # whatever it is, it is what is counted
        print(f"CRASH {item.kind} {item.id}: {error!r}")
        return "crash"
    if value is None:
        return "refused"
    if value == meant(item):
        return "right"
    print(f"WRONG {item.kind} {item.id}: {value}")
    return "wrong"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the same: it takes seconds")
    parser.parse_args()
    items = [*made(), *recorded()]
    came = {(item.kind, item.id): judge(item) for item in items}
    repaired = {item.after for item in items if item.after and came[item.kind, item.id] == "right"}
    holds = [item for item in items if item.expected is not None and not item.after]
    read_right = [item for item in holds if came[item.kind, item.id] == "right" or item.id in repaired]
    resist = Counter(item.kind for item in holds if item not in read_right)
    own = [item for item in items if item.kind == "recorded" and not item.after]
    own_read = sum(came[item.kind, item.id] == "right" for item in own)
    counted = Counter(came.values())
    print(f"{len(items)} answers of {len(REACH) + len(REFUSE)} kinds: {dict(counted)}")
    print(f"recorded: {len(own)}, of which {own_read} read at once, {len(repaired)} after a repair turn")
    print("kinds that resist:", dict(resist.most_common()))
    figures = [
        at_least("recovered", len(read_right) / len(holds), 0.95),
        exactly("wrong", counted["wrong"], 0),
        exactly("crashes", counted["crash"], 0),
        told("answers", len(items)),
        at_least("recorded", len(own), 80),
    ]
    print_figures("answers", figures)


if __name__ == "__main__":
    main()
