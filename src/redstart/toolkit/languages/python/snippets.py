"""Run a Python snippet."""

from __future__ import annotations

from collections.abc import Collection

from redstart.core.change import Snapshot
from redstart.core.shell import IN, TIGHT, Environment, Execution
from redstart.core.suite import Suite

FILE = "redstart_probe.py"


class PythonSnippets:
    language = "Python"

    def build_execution(
        self, snippet: str, snapshot: Snapshot, environment: Environment, suite: Suite, paths: Collection[str]
    ) -> Execution:
        suite_dir = "/".join(filter(None, (environment.mount, suite.folder)))
        source = f"{suite.folder}/src/" if suite.folder else "src/"
        places = [suite_dir, *([f"{suite_dir}/src"] if any(path.startswith(source) for path in paths) else [])]
        if own_path := environment.variables.get("PYTHONPATH"):
            places.append(own_path)
        return Execution(
            argv=(environment.python, f"{IN}/{FILE}"),
            snapshot=snapshot,
            environment=environment,
            limits=TIGHT,
            variables={"PYTHONPATH": ":".join(places), "PYTHONHASHSEED": "0"},
            cwd=suite.folder,
            files_in={FILE: snippet},
        )
