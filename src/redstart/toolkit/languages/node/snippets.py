"""Run snippets of JavaScript."""

from __future__ import annotations

import re
from collections.abc import Collection

from redstart.core.change import Snapshot
from redstart.core.shell import TIGHT, Environment, Execution
from redstart.core.suite import Suite

_MODULE = re.compile(r"^\s*(?:import|export)\b(?!\s*\()|^\s*(?:const .*= )?await\b", re.MULTILINE)
"""Syntax that only a JavaScript module may contain. Both kinds resolve files from the suite's directory."""
_LIMITS = TIGHT.model_copy(update={"memory": 2 << 30})
"""Node.js reserves more address space than it uses."""


class JavaScriptSnippets:
    language = "JavaScript"

    def build_execution(
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
