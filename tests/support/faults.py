"""Faults of endpoints: each spoils a good reply and names the error that a caller must derive from it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from redstart.core.chat import AnswerFault
from redstart.core.errors import ModelBusy, ModelError, ModelGarbled, ModelTimeout, ModelUnreachable
from support.server import Reply, Request, Script, build_body

RETRY_AFTER = 7
"""The seconds to wait that the fault `429` requests."""

_HTML = b"<!doctype html><html><body>Sign in to the wireless network</body></html>"


class Spoiled(NamedTuple):
    """One fault."""

    spoil: Callable[[Request, Reply], Reply]
    means: type[ModelError] | AnswerFault
    """The resulting error, or the fault of the answer."""
    slow: bool = False
    """Whether only the deadline reveals it."""


def _replace_fields(**changes: Any) -> Callable[[Request, Reply], Reply]:
    return lambda _, response: replace(response, **changes)


def _reply_with_status(status: int, **headers: str) -> Callable[[Request, Reply], Reply]:
    return _replace_fields(status=status, text="not now", headers=headers)


def _reply_with_body(body: bytes, kind: str = "application/json") -> Callable[[Request, Reply], Reply]:
    return _replace_fields(body=body, headers={"Content-Type": kind})


def _cut(request: Request, response: Reply) -> Reply:
    full_body = build_body(request, response)
    return replace(response, body=full_body[: len(full_body) // 2])


FAULTS: Mapping[str, Spoiled] = {
    "429": Spoiled(_reply_with_status(429, **{"Retry-After": str(RETRY_AFTER)}), ModelBusy),
    "500": Spoiled(_reply_with_status(500), ModelBusy),
    "529": Spoiled(_reply_with_status(529), ModelBusy),
    "reset": Spoiled(_replace_fields(drop=True), ModelUnreachable),
    "hang at start": Spoiled(_replace_fields(hang=True), ModelTimeout, slow=True),
    "hang in the middle": Spoiled(_replace_fields(hang_after=40), ModelTimeout, slow=True),
    "drip": Spoiled(_replace_fields(drip=0.1), ModelTimeout, slow=True),
    "HTML 200": Spoiled(_reply_with_body(_HTML, "text/html"), ModelGarbled),
    "cut JSON": Spoiled(_cut, ModelGarbled),
    "{}": Spoiled(_reply_with_body(b"{}"), ModelGarbled),
    "truncated": Spoiled(_replace_fields(finish="length"), AnswerFault.truncated),
    "garbage": Spoiled(_reply_with_body(b"\x00\xff\xfe\x80" * 50), ModelGarbled),
}


def spoil_script(script: Script, share: float, rng: random.Random, faults: Mapping[str, Spoiled] = FAULTS) -> Script:
    """Wrap a script so that this share of its replies is spoiled, each by a random one of `faults`."""
    kinds = list(faults.values())

    def reply(request: Request) -> Reply:
        answer = script(request)
        response = Reply(answer) if isinstance(answer, str) else answer
        return rng.choice(kinds).spoil(request, response) if rng.random() < share else response

    return reply
