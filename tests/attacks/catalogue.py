"""The attacks in `programs`: one hostile program per file, described by its first three lines."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PROGRAMS = Path(__file__).parent / "programs"
HELPER = "hostile.py"
COMMANDS = {".py": ("/usr/bin/python3", "-B"), ".mjs": ("node",), ".sh": ("/bin/sh",)}

EVIDENCE = {
    "processes": "the host counts more processes and threads at once than are allowed",
    "memory": "the host counts more memory than is allowed, over all processes and files in memory together",
    "disk": "the file system of the workspace holds more than is allowed",
    "inodes": "the file system of the workspace holds more files than are allowed",
    "output": "the host keeps more output than is allowed",
    "time": "the program runs, or the host waits, longer than is allowed",
    "survive": "one of its processes is alive after the end",
    "contact": "a listener of the host was reached: TCP, IPv6, UDP, socket file, abstract socket, daemon's socket",
    "read": "the output or a collected file contains a planted secret",
    "write": "something changed in the user's home, in the real repo or in a folder that everyone may write to",
    "harm": "the agent is dead, stopped, slowed or confined",
    "trace": "the kernel names a debugger of the agent",
    "namespace": "the kernel shows a process in a user namespace that its parent is not in",
    "descriptor": "the kernel shows an open descriptor of the forbidden kind",
    "privilege": "the kernel shows a process that runs as another user than the one who started it",
    "terminal": "the user's terminal received input or output that nobody typed or printed",
    "leave": "a setuid file, a device, a capability or a whole folder is left on the host",
    "setting": "a setting of the host's kernel changed",
    "system": "a file was left in a system folder",
    "ipc": "the host's list of shared memory contains one of its segments",
    "shadow": "the output or a collected file contains a line of the host's password file",
    "machine": "the output or a collected file contains the host's machine ID",
    "interface": "the output or a collected file names one of the host's network interfaces",
    "word": "the program itself reports success, because the host cannot observe it",
}
BARE = {
    "works": "without a sandbox, it succeeds",
    "kernel": "without a sandbox, it succeeds if the host's kernel and programs allow it for an ordinary user",
    "refused": "even without a sandbox, an ordinary user is refused",
    "untried": "not run without a sandbox, because it could affect things that are not ours",
}


class Attack(NamedTuple):
    """A hostile program and the evidence of its success."""

    name: str
    """`group/stem`, unique among attacks."""
    path: Path
    words: str
    evidence: str
    """The evidence of its success, one of `EVIDENCE`. All other kinds are checked as well."""
    bare: str
    """Its known result without a sandbox, one of `BARE_RESULTS`."""

    @property
    def group(self) -> str:
        return self.name.partition("/")[0]

    @property
    def file(self) -> str:
        return f"attack{self.path.suffix}"

    @property
    def files(self) -> dict[str, str]:
        """The files beside the attack when it runs."""
        files = {self.file: self.path.read_text(encoding="utf-8")}
        if self.path.suffix == ".py":
            files[HELPER] = (PROGRAMS / HELPER).read_text(encoding="utf-8")
        return files


def read(path: Path) -> Attack:
    """Read an attack from its file. Raises `ValueError` if the header in its first three lines is invalid."""
    description, *header_lines = (
        line.lstrip("#/ ").strip() for line in path.read_text(encoding="utf-8").splitlines()[:3]
    )
    header = dict(line.split(": ", 1) for line in header_lines)
    if set(header) != {"evidence", "bare"} or header["evidence"] not in EVIDENCE or header["bare"] not in BARE:
        raise ValueError(f"{path}: the header must give a description, the evidence and the result without a sandbox")
    return Attack(f"{path.parent.name}/{path.stem}", path, description, header["evidence"], header["bare"])


def attacks() -> list[Attack]:
    """List all attacks, sorted by path."""
    return [read(path) for path in sorted(PROGRAMS.glob("*/*")) if path.suffix in COMMANDS]
