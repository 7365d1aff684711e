"""Running a snippet of JavaScript."""

from __future__ import annotations

import re
from collections.abc import Collection

from redstart.core.change import Snapshot
from redstart.core.shell import TIGHT, Environment, Execution
from redstart.core.suite import Suite

_MODULE = re.compile(r"^\s*(?:import|export)\b(?!\s*\()|^\s*(?:const .*= )?await\b", re.MULTILINE)
"""What only a module of JavaScript may hold. Either kind finds the project's files from where the suite runs."""
_LIMITS = TIGHT.model_copy(update={"memory": 2 << 30})
"""Node.js reserves more address space than it uses."""


class JavaScriptSnippets:
    language = "JavaScript"

    def execution(
        self, snippet: str, snapshot: Snapshot, environment: Environment, suite: Suite, paths: Collection[str]
    ) -> Execution:
        kind = "module" if _MODULE.search(snippet) else "commonjs"
        return Execution(
            argv=("node", f"--input-type={kind}", "--eval", snippet),
            snapshot=snapshot,
            environment=environment,
            limits=_LIMITS,
            cwd=suite.folder,
            variables={"NO_COLOR": "1"},
        )
