"""Where the results of an evaluation are kept, so that one that was killed goes on where it was."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from redstart.core.errors import ConfigError, StoreError
from redstart.core.noun import Noun
from redstart.core.run import Level, Limits
from redstart.evals.outcome import Key, Outcome, Place

Row = TypeVar("Row", bound=Noun)


class Plan(Noun):
    """What an evaluation does. What is left open here (how many at once) changes no result."""

    name: str
    source: str
    tasks: str
    """A digest over all tasks: with others it is another evaluation."""
    model: str
    engine: str = "inline"
    runs: int = 1
    seeds: tuple[int, ...] = (0,)
    limits: Limits = Limits()
    verify: Level = Level.standard
    looks: int | None = None
    remembers: bool = False
    """Whether a run may recall what runs on other tasks have left; never what one on the same task has."""

    def keys(self, tasks: list[str]) -> list[Key]:
        """Every run of it, one round over all tasks after another."""
        rounds = [(seed, run) for seed in self.seeds for run in range(1, self.runs + 1)]
        return [Key(task=task, seed=seed, run=run) for seed, run in rounds for task in tasks]


class Begun(Noun):
    """Which run of the store a key has."""

    key: Key
    run_id: str


class Results(Protocol):
    """The rows of one evaluation. Each call is durable when it returns, and a row is there as a whole or not at all."""

    def begin(self, key: Key, run_id: str) -> None:
        """Keeps that this run was begun for the key."""
        ...

    def begun(self) -> dict[Key, str]:
        """The run of each key; where there are several, the last one."""
        ...

    def add(self, outcome: Outcome) -> None:
        """Keeps what a run came to."""
        ...

    def rows(self) -> list[Outcome]:
        """One for each key, in the order of their keys; what is broken gives way to what came later."""
        ...


class FileResults:
    """In a folder: the plan as JSON, and two tables of JSON Lines that only grow."""

    def __init__(self, folder: Path) -> None:
        """Of an evaluation that is there. Raises `ConfigError` where there is none, or its plan cannot be read."""
        self._folder = folder
        try:
            self.plan = Plan.model_validate_json((folder / "plan.json").read_bytes())
        except OSError as error:
            known = sorted(one.parent.name for one in folder.parent.glob("*/plan.json"))
            listed = f"there are: {', '.join(known)}" if known else "begin one with: redstart eval run"
            raise ConfigError(f"there is no evaluation {folder.name}", remedy=listed) from error
        except ValueError as error:
            raise ConfigError(f"the plan of {folder.name} cannot be read") from error

    @classmethod
    def open(cls, folder: Path, plan: Plan) -> FileResults:
        """Begins the evaluation, or goes on with it. Raises `ConfigError` where it was begun with another plan."""
        file = folder / "plan.json"
        if not file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            beside = folder / f".plan-{os.getpid()}"
            _write(beside, plan.model_dump_json(indent=2).encode(), os.O_TRUNC)
            beside.replace(file)
        results = cls(folder)
        if results.plan != plan:
            old, new = results.plan.model_dump(), plan.model_dump()
            other = ", ".join(name for name in old if old[name] != new[name])
            raise ConfigError(
                f"evaluation {plan.name} was begun with another plan ({other})", remedy="give this one another --name"
            )
        for table in folder.glob("*.jsonl"):
            mend(table)
        return results

    def begin(self, key: Key, run_id: str) -> None:
        self._append("begun.jsonl", Begun(key=key, run_id=run_id))

    def begun(self) -> dict[Key, str]:
        return {one.key: one.run_id for one in self._read("begun.jsonl", Begun)}

    def add(self, outcome: Outcome) -> None:
        self._append("rows.jsonl", outcome)

    def rows(self) -> list[Outcome]:
        found: dict[Key, Outcome] = {}
        for row in self._read("rows.jsonl", Outcome):
            if row.key not in found or found[row.key].place is Place.broken:
                found[row.key] = row
        return sorted(found.values(), key=lambda row: (row.key.seed, row.key.run, row.key.task))

    def _append(self, name: str, row: Noun) -> None:
        append_row(self._folder / name, row)

    def _read(self, name: str, kind: type[Row]) -> Iterator[Row]:
        file = self._folder / name
        for line in file.read_bytes().splitlines(keepends=True) if file.exists() else ():
            # A line without its end was cut off by a crash: what it told was not told.
            if line.endswith(b"\n"):
                yield kind.model_validate_json(line)


def mend(file: Path) -> None:
    """Takes away what a crash left of a last line, so that the next one begins on its own."""
    data = file.read_bytes() if file.exists() else b""
    if data and not data.endswith(b"\n"):
        os.truncate(file, data.rfind(b"\n") + 1)


def append_row(file: Path, row: Noun) -> None:
    """One more line of JSON, durable when it returns. Raises `StoreError` where it cannot be written."""
    _write(file, row.model_dump_json().encode() + b"\n", os.O_APPEND)


def _write(file: Path, data: bytes, how: int) -> None:
    """In one call, so that a line of one writer is not parted by that of another. Raises `StoreError`."""
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | how, 0o644)
        try:
            if os.write(handle, data) != len(data):
                raise StoreError(f"{file.name} could not be written whole")
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise StoreError(f"{file.name} cannot be written: {error.strerror}") from error
