"""What text may be a lesson: plain advice about code, and nothing that could act.

A lesson is data in a prompt, and no rule here is the boundary: policy is judged on the resulting tree, and programs run
in a sandbox. What is refused here would be of no use to an honest run.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from redstart.core.lesson import LONGEST, Provenance
from redstart.core.visible import is_seen

_ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]*://|\bhxxps?\b|\bwww\.|\bmailto:|\b\w[\w.+-]*@[\w-]+\.\w|\b(?:\d{1,3}\.){3}\d{1,3}\b"
    r"|\b[\w-]+\.(?:com|org|net|edu|gov)\b|\b[\w-]+\.(?:io|dev|ai|co|app|sh|xyz|ru|cn|de|uk|me|info|biz)/",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"^\s*[$>%]\s+\w|&&|\|\s*(?:sh|bash|zsh|python\d?|tee|xargs|sudo)\b|\$\(|(?<![\w-])--[a-z][\w-]+"
    r"|\b(?:sudo|curl|wget|chmod|chown|scp|ssh)\s+\S"
    r"|\b(?:rm|mv|cp|kill|nc|eval|exec|source|export|tar|cat)\s+(?:-\w|[/~$\"'])"
    r"|\b(?:pip3?|npm|npx|yarn|pnpm|uv|poetry|pdm|apt|apt-get|brew|conda|cargo|gem)\s+"
    r"(?:install|add|i|run|exec|uninstall|remove|update|upgrade|sync)\b"
    r"|\bgit\s+(?:push|commit|reset|checkout|clean|config|rebase|apply|add|clone|fetch|pull|stash|rm|restore|merge)\b"
    r"|\b(?:docker|podman|kubectl)\s+(?:run|exec|pull|build|apply|cp)\b"
    r"|\b(?:python\d?(?:\.\d+)?|pytest|node|bash|sh|zsh|powershell|make|tox|nox|ruff)\s+"
    r"(?:-\w|[\w./-]+\.(?:py|sh|js|mjs|ts|ps1)\b)",
    re.IGNORECASE | re.MULTILINE,
)
_UNLESS_FORBIDDEN = r"(?<!not )(?<!never )(?<!n't )(?<!n’t )\b"
"""Before a verb: to forbid it is honest advice."""
_BETWEEN = r"(?:(?!\b(?:not|never|without|instead)\b)[^.\n]){0,40}?"
_POLICY = (
    re.compile(
        _UNLESS_FORBIDDEN + r"(?:ignor|disregard|forget|overrid|bypass|circumvent|disabl|deactivat|turn(?:ing)? off|"
        r"switch(?:ing)? off|skip|remov|delet|weaken|loosen|relax|suppress|work(?:ing)? around|get(?:ting)? around)"
        r"\w*\b"
        + _BETWEEN
        + r"\b(?:instructions?|rules?|polic(?:y|ies)|guards?|guardrails?|tests?|assertions?|asserts|sandbox|budgets?|"
        r"verification|reviews?|approvals?|hooks?|safety|security|permissions?|linters?|tripwires?|"
        r"(?:safety|security|policy|lint|ci|honesty) checks?)\b",
        re.IGNORECASE,
    ),
    re.compile(
        _UNLESS_FORBIDDEN
        + r"(?:edit|chang|modif|rewrit|adjust|updat|regenerat)\w*\b"
        + _BETWEEN
        + r"\b(?:tests?|test files?|conftest\w*|assertions?|expected (?:values?|outputs?|results?)|snapshots?)\b",
        re.IGNORECASE,
    ),
    re.compile(
        _UNLESS_FORBIDDEN
        + r"(?:allow|grant|enabl|open|request|ask for)\w*\b"
        + _BETWEEN
        + r"\b(?:network|internet|root|sandbox|host access|write access|admin\w*)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:exfiltrat|upload|send|post|leak|print|reveal|output|cop(?:y|ies)|read|writ)\w*\b"
        + _BETWEEN
        + r"\b(?:secrets|credentials|passwords|api keys?|private keys?|environment variables|\.env\b)",
        re.IGNORECASE,
    ),
    re.compile(
        r"\bsystem prompt\b|\byou are now\b|\byour (?:new )?(?:instructions?|role|task)s? (?:is|are)\b|\bjailbreak"
        r"|\bdeveloper mode\b|\b(?:previous|prior|above|earlier) (?:instructions?|messages?|rules?)\b|\bredstart\b"
        r"|\b(?:turn|switch)(?:ing)? (?:the )?(?:sandbox|checks?|tests?|guards?) off\b"
        r"|\balways (?:approve|accept|answer|say|report|claim)\b"
        r"|\b(?:mark|report|call) (?:it|this|the run) (?:as )?green\b",
        re.IGNORECASE,
    ),
    re.compile(r"\bpytest\.(?:skip|mark)|\bx(?:fail|pass)\b|\bnoqa\b|\btype:\s*ignore\b|\bpragma\b", re.IGNORECASE),
    re.compile(r"\b(?:memory|sandbox|policy|verify|budget|models?|limits?)\.[a-z_]+\s*=", re.IGNORECASE),
)
_PLACES = re.compile(
    r"(?<![\w.)\]])(?:~/|/(?:etc|proc|sys|dev|home|root|usr|var|tmp|Users)\b)|(?<![\w.])\.\./"
    r"|(?<![\w/])\.(?:git(?:hub|ignore|attributes|modules|lab-ci)?|ssh|aws|env(?:rc)?|bashrc|profile|netrc|vscode)\b"
    r"|\b(?:conftest|sitecustomize|usercustomize)\b|\w\.pth\b"
    r"|\b(?:pyproject\.toml|setup\.cfg|tox\.ini|pytest\.ini|package\.json|agents\.md|claude\.md)\b",
    re.IGNORECASE,
)
"""What no fix may touch, or what lies outside of the project."""
_MARKS = re.compile(
    r"```|</\s*data\b|<\|?/?\s*(?:system|assistant|user|tool|human|im_start|im_end|instructions?)\b|\[/?INST\]|«secret:"
    r"|^\s*(?:system|assistant|user|human)\s*:",
    re.IGNORECASE | re.MULTILINE,
)
_PACKED = re.compile(r"[A-Za-z0-9+/=_-]{48,}")
"""Longer than any word: what is written so is not meant to be read."""
_BLANKS = re.compile(r"\s+")


def refusals(when: str, advice: str, provenance: Provenance, has_secret: Callable[[str], bool]) -> tuple[str, ...]:
    """Why this may not become a lesson, in plain words; empty where it may.

    `has_secret` says whether a text holds one.
    """
    given = f"{when}\n{advice}"
    text = unicodedata.normalize("NFKC", given)
    one_line = _BLANKS.sub(" ", text)
    found = [
        (provenance.outcome != "verified", "it comes from a run that was not verified"),
        (not when.strip() or not advice.strip(), "it does not say when, or what"),
        (len(when) + len(advice) > LONGEST, f"it is longer than {LONGEST} characters"),
        (_hides(given), "it has characters that cannot be seen"),
        (bool(_ADDRESS.search(text)), "it names an address"),
        (bool(_COMMAND.search(text) or _COMMAND.search(one_line)), "it holds a command"),
        (any(pattern.search(one_line) for pattern in _POLICY), "it would change what is allowed"),
        (bool(_PLACES.search(unicodedata.normalize("NFKC", advice))), "it sends to a place that is no fix's to touch"),
        (bool(_MARKS.search(text)), "it is written as if it were a part of the conversation"),
        (bool(_PACKED.search(text)), "it holds text that nobody can read"),
        (has_secret(given) or has_secret(text), "it holds a secret"),
    ]
    return tuple(reason for is_so, reason in found if is_so)


def _hides(text: str) -> bool:
    return any(not is_seen(sign) and sign not in "\n\t" for sign in text)
