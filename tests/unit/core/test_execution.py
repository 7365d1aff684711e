from __future__ import annotations

from redstart.core.change import Snapshot
from redstart.core.shell import Environment, Execution


def test_execution_on_the_default_host_is_stored_without_hostname() -> None:
    snapshot, environment = Snapshot(tree="t", base="b", pack="p"), Environment(mount="/repo", python="python")
    execution = Execution(argv=("true",), snapshot=snapshot, environment=environment)
    assert "hostname" not in execution.model_dump_json()
    changed_execution = execution.model_copy(update={"hostname": "web-2"})
    assert Execution.model_validate_json(changed_execution.model_dump_json()) == changed_execution
