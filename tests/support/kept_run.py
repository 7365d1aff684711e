"""A run as the store without a disk keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from redstart.core.events import Event
from redstart.core.run import RunState
from redstart.core.run_options import RunOptions
from redstart.core.standing import Control, Holder, RunRow, Stop
from redstart.ports.store.port.runs import StepRow, Told


@dataclass
class KeptRun:
    state: RunState
    first: RunState
    folder: str
    created: datetime
    updated: datetime
    fence: int = 0
    control: Control = Control.none
    holder: Holder | None = None
    beat: float = 0.0
    stop: Stop | None = None
    options: RunOptions | None = None
    steps: list[StepRow] = field(default_factory=list[StepRow])
    events: dict[int, Event] = field(default_factory=dict[int, Event])
    told: list[Told] = field(default_factory=list[Told])

    @property
    def row(self) -> RunRow:
        state = self.state
        return RunRow(
            run_id=state.run_id,
            mode=state.spec.mode.value,
            status=state.status,
            result="" if state.result is None else state.result.value,
            goal=state.spec.goal[:200],
            repo=state.spec.repo,
            folder=self.folder,
            created=self.created,
            updated=self.updated,
            control=self.control,
            holder=self.holder,
            beat=self.beat,
            stop=self.stop,
            options=self.options,
        )
