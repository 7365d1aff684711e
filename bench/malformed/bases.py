"""True answers, from which the malformed ones are made: each question's own, with what makes reading hard."""

from __future__ import annotations

BASES: dict[str, list[dict[str, object]]] = {
    "plan": [
        {
            "summary": "Return an empty list instead of None when the file has no rows.",
            "subtasks": [
                {
                    "title": "Guard the empty file",
                    "criteria": ["read_rows('empty.csv') == []", "no warning is printed"],
                },
                {"title": "Document it", "criteria": ["the docstring mentions empty files"]},
            ],
        },
        {
            "summary": "Write the parser first, then the command: they share nothing but the Entry type.",
            "subtasks": [
                {"title": "Parse key = value lines", "criteria": ["# starts a comment", "blank lines are skipped"]},
                {"title": "Command line", "criteria": ["exit code 2 for a missing file", "it prints {name: value}"]},
                {"title": "Errors", "criteria": ["line 3: no '=' found"]},
            ],
        },
        {"summary": "Don't touch the cache; the user's setting wins.", "subtasks": []},
        {
            "summary": "Größen in Zentimetern → Zoll umrechnen, auf 2 Stellen gerundet.",
            "subtasks": [{"title": "Umrechnung", "criteria": ["2.54 cm sind 1 Zoll", "negative Werte: ValueError"]}],
        },
    ],
    "remember": [
        {
            "summary": "An off-by-one in a slice dropped the first item.",
            "root_cause": "The slice began at 1 because the header row had been removed elsewhere already.",
            "fix": "Slice from 0; remove the header in one place only.",
            "debug_steps": [
                "Print len(rows) before and after",
                "Compare with the file's first line",
                "Run the one test",
            ],
        },
        {
            "summary": "A mutable default argument kept state between calls.",
            "root_cause": "def load(path, cache={}) makes one dict for all calls.",
            "fix": "Use cache=None and make the dict inside: if cache is None: cache = {}",
            "debug_steps": ["Call it twice with different files; the second call's result is the first's"],
        },
        {
            "summary": "The pattern matched digits only in ASCII.",
            "root_cause": "[0-9] was written where \\d was meant, and C:\\temp was not escaped.",
            "fix": "Use \\d+ with re.UNICODE, and a raw string.",
            "debug_steps": [],
        },
        {
            "summary": "Time zones were compared as text.",
            "root_cause": "'2030-01-01T00:00+01:00' sorts after '2030-01-01T00:00Z' although it is earlier.",
            "fix": "Parse both, then compare: a < b (not str(a) < str(b)).\nKeep the zone for display only.",
            "debug_steps": ["Write both times as UTC", "Look for sorted() on strings, e.g. key=str"],
        },
    ],
    "reflect": [
        {
            "root_cause": "The rounding happens before the discount is applied.",
            "what_failed": "Changing round() to floor() moved the error to other prices.",
            "try_next": "Apply the discount first, then round once at the end.",
        },
        {
            "root_cause": "parse() returns a tuple (value, rest), and the caller takes [0] of the value.",
            "what_failed": "I edited the caller's caller; it isn't involved: {'a': 1} comes in right.",
            "try_next": "Unpack the tuple: value, rest = parse(text)",
        },
        {
            "root_cause": "The loop's end is exclusive, so the last day is never visited.",
            "what_failed": "Adding 1 to the start shifted every day.",
            "try_next": "Use range(start, end + 1) and check February 29th.",
        },
        {
            "root_cause": "A list is changed while it is iterated over.",
            "what_failed": "Sorting it first only changed which items were skipped, i.e. #2 and #4 // then #3.",
            "try_next": "Iterate over a copy: for item in list(items): ...then remove",
        },
    ],
}

REQUIRED = {"plan": ["summary"], "remember": ["summary", "root_cause", "fix"], "reflect": []}
OPTIONAL_LIST = {"plan": "subtasks", "remember": "debug_steps", "reflect": ""}
