"""Run Bandit in a separate process on the files where one of the tests that we use can find something."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from redstart.core.errors import ConfigError
from redstart.core.finding import Finding, FindingKind, Risk
from redstart.toolkit.checks.source import MAX_FILE_BYTES, Source

TOOL = "bandit"
RULE_RISKS = {
    "B201": Risk.high,  # flask debug
    "B304": Risk.high,  # broken ciphers
    "B305": Risk.high,  # ECB
    "B312": Risk.medium,  # telnet
    "B321": Risk.medium,  # ftp
    "B501": Risk.high,  # requests without verification
    "B502": Risk.high,  # old SSL
    "B503": Risk.high,
    "B504": Risk.medium,
    "B505": Risk.high,  # short keys
    "B507": Risk.high,  # unknown ssh hosts
    "B508": Risk.medium,  # snmp
    "B509": Risk.medium,
    "B609": Risk.high,  # wildcards in a shell
    "B612": Risk.high,  # logging.config.listen
    "B613": Risk.high,  # text that is displayed differently from how it runs
    "B615": Risk.low,  # a model without a revision
    "B702": Risk.high,  # mako
}
"""The tests that we use: ruff also covers the rest, or our own rules do with fewer false alarms."""
_CAN_SPEAK = re.compile(
    r"debug\s*=|Crypto|cryptography|telnet|ftplib|verify\s*=|\bssl\b|\bSSL\b|paramiko|snmp|(?:chown|chmod|tar|rsync)\b[^\n]*\*|"
    r"logging\.config|[\u202a-\u202e\u2066-\u2069\u200f]|from_pretrained|load_dataset|hf_hub|snapshot_download|mako"
)
_SECONDS = 300
_INSTALL_HINT = "install bandit next to redstart: pip install bandit"


def ask_bandit(sources: Sequence[Source]) -> list[Finding]:
    """Run Bandit on these files; comments in them that disable it have no effect.

    No code of the files runs. Raises `ConfigError` if Bandit is missing or does not work.
    """
    sources_by_path = {
        source.path: source
        for source in sources
        if source.path.endswith(".py") and len(source.data) <= MAX_FILE_BYTES and _CAN_SPEAK.search(source.text)
    }
    if not sources_by_path:
        return []
    with tempfile.TemporaryDirectory(prefix="redstart-bandit-") as name:
        folder = Path(name).resolve()
        for path, source in sources_by_path.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(source.data)
        report = _run(folder)
    findings: list[Finding] = []
    for message in report["results"]:
        source = sources_by_path[Path(message["filename"]).relative_to(folder).as_posix()]
        rule, issue_text = str(message["test_id"]), str(message["issue_text"])
        findings.append(
            source.build_finding(
                TOOL, rule, int(message["line_number"]), issue_text, FindingKind.dangerous_call, RULE_RISKS[rule]
            )
        )
    return findings


def _run(folder: Path) -> dict[str, Any]:
    # -P: a module among the files must not replace one of Bandit's
    command = [sys.executable, "-P", "-m", "bandit", "-r", str(folder), "-f", "json", "-q", "--exit-zero"]
    command += ["--ignore-nosec", "-t", ",".join(RULE_RISKS), "-x", ""]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        completed = subprocess.run(
            command, cwd=folder.parent, env=variables, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS
        )
        return json.loads(completed.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"bandit does not work: {error}", remedy=_INSTALL_HINT) from error
