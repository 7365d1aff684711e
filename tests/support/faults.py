"""Faults of endpoints: each spoils a good reply and names the error that a caller must derive from it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from redstart.core.chat import AnswerFault
from redstart.core.errors import ModelBusy, ModelError, ModelGarbled, ModelTimeout, ModelUnreachable
from support.server import Reply, Request, Script, body_of

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


def _with(**changes: Any) -> Callable[[Request, Reply], Reply]:
    return lambda _, good: replace(good, **changes)


def _status(status: int, **headers: str) -> Callable[[Request, Reply], Reply]:
    return _with(status=status, text="not now", headers=headers)


def _body(body: bytes, kind: str = "application/json") -> Callable[[Request, Reply], Reply]:
    return _with(body=body, headers={"Content-Type": kind})


def _cut(request: Request, good: Reply) -> Reply:
    whole = body_of(request, good)
    return replace(good, body=whole[: len(whole) // 2])


FAULTS: Mapping[str, Spoiled] = {
    "429": Spoiled(_status(429, **{"Retry-After": str(RETRY_AFTER)}), ModelBusy),
    "500": Spoiled(_status(500), ModelBusy),
    "529": Spoiled(_status(529), ModelBusy),
    "reset": Spoiled(_with(drop=True), ModelUnreachable),
    "hang at start": Spoiled(_with(hang=True), ModelTimeout, slow=True),
    "hang in the middle": Spoiled(_with(hang_after=40), ModelTimeout, slow=True),
    "drip": Spoiled(_with(drip=0.1), ModelTimeout, slow=True),
    "HTML 200": Spoiled(_body(_HTML, "text/html"), ModelGarbled),
    "cut JSON": Spoiled(_cut, ModelGarbled),
    "{}": Spoiled(_body(b"{}"), ModelGarbled),
    "truncated": Spoiled(_with(finish="length"), AnswerFault.truncated),
    "garbage": Spoiled(_body(b"\x00\xff\xfe\x80" * 50), ModelGarbled),
}


def spoiling(script: Script, share: float, luck: random.Random, faults: Mapping[str, Spoiled] = FAULTS) -> Script:
    """Wrap a script so that this share of its replies is spoiled, each by a random one of `faults`."""
    kinds = list(faults.values())

    def reply(request: Request) -> Reply:
        said = script(request)
        good = Reply(said) if isinstance(said, str) else said
        return luck.choice(kinds).spoil(request, good) if luck.random() < share else good

    return reply
