"""The place where attacks run: a small disk, and for each attack a user's home with secrets, and listeners."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.repo.trees import GitTrees

ORDINARY = 61_234
"""The user ID of attacks without a sandbox if the tests run as root."""
DISK = 420 << 20
INODES = 180_000
GROUP = "224.0.0.251"
AGENT = """
import os, sys
kept = open('secret.txt')
gone = open('gone.txt', 'w+'); gone.write(os.environ['AGENT_KEY']); gone.flush(); os.unlink('gone.txt')
print('ready', flush=True)
while True: sys.stdin.readline() or sys.exit()
"""
"""A stand-in for the agent with a secret in its variables, arguments, memory and open files."""


def may_bound() -> bool:
    """Check whether attacks can run here without a sandbox, bounded and as an ordinary user."""
    return os.geteuid() == 0


class Yard:
    """A small disk for workspaces and results, so that filling it does no harm.

    It is a plain folder if it cannot be mounted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = folder / "disk"
        self.scratch = self.disk / "scratch"
        self.disk.mkdir()
        self._mounted = may_bound() and mount_tmpfs(self.disk, DISK, INODES)
        self.scratch.mkdir()
        self.trees = GitTrees(self.disk / "snapshots", DirectoryBlobs(self.disk / "blobs"))
        project = folder / "project"
        project.mkdir()
        (project / "shop.py").write_text("price = 1\n")
        self.snapshot = self.trees.take(project)

    def close(self) -> None:
        self.trees.close()
        if self._mounted:
            unmount(self.disk)

    def list_leftovers(self) -> list[Path]:
        """List files in folders that must be empty between two executions."""
        return [path for folder in (self.scratch, self.disk / "snapshots/work") for path in folder.glob("*")]


@contextlib.contextmanager
def yard(folder: Path) -> Generator[Yard]:
    testbed = Yard(folder)
    try:
        yield testbed
    finally:
        testbed.close()


def mount_tmpfs(folder: Path, size: int, inodes: int) -> bool:
    options = f"size={size},nr_inodes={inodes},mode=0755"
    command = ["mount", "-t", "tmpfs", "-o", options, "redstart-attacks", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)


class Stage:
    """One attack's surroundings: a home with secrets, listeners, and a stand-in for the agent. New for each attack."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = f"token-{secrets.token_hex(12)}"
        self.canaries = {
            kind: f"canary-{secrets.token_hex(16)}"
            for kind in ("file", "ssh", "aws", "name", "dotenv", "remote", "store", "agent", "argument")
        }
        self.key = secrets.randbelow(1 << 30) + 1
        """The key of a shared memory segment."""
        self.home, self.outside = folder / "home", folder / "outside"
        self.repo = self.home / "projects" / "shop"
        self._plant_files()
        self._open_permissions()
        self._listen()
        self.agent = self._start_agent()
        self.agent_before = self.read_agent_state()
        self.before = fingerprint(self.home, self.outside)

    def _plant_files(self) -> None:
        c = self.canaries
        files = {
            "secret.txt": c["file"],
            f"{c['name']}.txt": "",
            ".ssh/id_ed25519": c["ssh"],
            ".aws/credentials": f"[default]\naws_secret_access_key = {c['aws']}\n",
            ".bashrc": "",
            ".local/share/redstart/redstart.db": f"SQLite format 3\0{c['store']}",
            "projects/shop/shop.py": "price = 1\n",
            "projects/shop/.env": f"KEY={c['dotenv']}\n",
            "projects/shop/.git/HEAD": "ref: refs/heads/main\n",
            "projects/shop/.git/config": f'[remote "origin"]\n\turl = https://ann:{c["remote"]}@example.com/shop\n',
        }
        for name, text in files.items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name in ("hooks", "objects", "refs"):
            (self.repo / ".git" / name).mkdir()
        self.outside.mkdir()

    def _open_permissions(self) -> None:
        """Open all permissions, so that only the sandbox can stop an attack."""
        for path in (self.folder, *self.folder.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o666)
            if may_bound():
                os.chown(path, ORDINARY, ORDINARY)

    def _listen(self) -> None:
        def bound(family: int, kind: int, address: object) -> socket.socket:
            listener = socket.socket(family, kind)
            listener.setblocking(False)
            listener.bind(address)  # type: ignore[arg-type]
            if kind == socket.SOCK_STREAM:
                listener.listen(8)
            return listener

        stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
        self.abstract = f"redstart-{self.token}"
        self.listeners = {
            "TCP4": bound(socket.AF_INET, stream, ("0.0.0.0", 0)),
            "UDP": bound(socket.AF_INET, datagram, ("0.0.0.0", 0)),
            "ABSTRACT": bound(socket.AF_UNIX, stream, f"\0{self.abstract}"),
            "UNIX": bound(socket.AF_UNIX, stream, str(self.folder / "u.sock")),
            "DOCKER": bound(socket.AF_UNIX, stream, str(self.folder / "d.sock")),
        }
        with contextlib.suppress(OSError):
            self.listeners["TCP6"] = bound(socket.AF_INET6, stream, ("::1", 0))
        with contextlib.suppress(OSError):
            member = struct.pack("4s4s", socket.inet_aton(GROUP), socket.inet_aton("127.0.0.1"))
            self.listeners["UDP"].setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        for name in ("u.sock", "d.sock"):
            (self.folder / name).chmod(0o777)

    def _start_agent(self) -> subprocess.Popen[bytes]:
        command = [find_python(), "-I", "-S", "-c", AGENT, self.canaries["argument"]]
        process = subprocess.Popen(
            [*as_ordinary(), *command],
            cwd=self.home,
            env={"AGENT_KEY": self.canaries["agent"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n", "the stand-in for the agent did not start"
        return process

    def close(self) -> None:
        for listener in self.listeners.values():
            listener.close()
        if self.agent.poll() is None:
            self.agent.send_signal(signal.SIGCONT)
            self.agent.kill()
        self.agent.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)

    def build_variables(self) -> dict[str, str]:
        """Build the environment variables of an attack; none holds a secret."""
        ports = {
            name: str(listener.getsockname()[1])
            for name, listener in self.listeners.items()
            if name[:3] in ("TCP", "UDP")
        }
        return {
            "ATTACK_TOKEN": self.token,
            "ATTACK_HOME": str(self.home),
            "ATTACK_REPO": str(self.repo),
            "ATTACK_OUTSIDE": str(self.outside),
            "ATTACK_CANARY": str(self.home / "secret.txt"),
            "ATTACK_KEY": str(self.key),
            "ATTACK_AGENT": str(self.agent.pid),
            "ATTACK_ADDRESS": find_host_address(),
            "ATTACK_ABSTRACT": self.abstract,
            "ATTACK_UNIX": str(self.folder / "u.sock"),
            "ATTACK_DOCKER": str(self.folder / "d.sock"),
            **{f"ATTACK_{name}": port for name, port in ports.items()},
        }

    def list_contacts(self) -> list[str]:
        """List the listeners that were reached. The kernel accepts connections itself, so a late check is enough."""
        reached_names: list[str] = []
        for name, listener in self.listeners.items():
            with contextlib.suppress(OSError):
                if listener.type == socket.SOCK_DGRAM:
                    listener.recv(100)
                else:
                    listener.accept()[0].close()
                reached_names.append(name)
        return reached_names

    def read_agent_state(self) -> dict[str, object]:
        """Read the state of the agent that an attack could change; empty if the agent is dead."""
        pid = self.agent.pid
        if self.agent.poll() is not None:
            return {}
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return {
            "stopped": fields[0] in "Tt",
            "nice": fields[16],
            "affinity": sorted(os.sched_getaffinity(pid)),
            "limits": Path(f"/proc/{pid}/limits").read_text(),
            "oom": Path(f"/proc/{pid}/oom_score_adj").read_text(),
        }


@contextlib.contextmanager
def open_stage(folder: Path) -> Generator[Stage]:
    new_stage = Stage(folder)
    try:
        yield new_stage
    finally:
        new_stage.close()


def find_python() -> str:
    """Return an interpreter that an ordinary user may start: ours may be in a private home."""
    return "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable


def as_ordinary() -> list[str]:
    """Build the prefix that runs a command as an ordinary user."""
    if not may_bound():
        return []
    return ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "--inh-caps=-all", "--"]


def find_host_address() -> str:
    """Return the host's address in its network, or loopback if it has none. Sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return "127.0.0.1"


def fingerprint(*folders: Path) -> dict[str, tuple[object, ...]]:
    """Describe everything below the folders by the properties whose change matters."""

    def describe_path(path: Path) -> tuple[object, ...]:
        path_stat = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(path_stat.st_mode) else ""
        return path_stat.st_mode, path_stat.st_uid, path_stat.st_nlink, path_stat.st_mtime_ns, content

    return {str(path): describe_path(path) for folder in folders for path in iter_tree(folder)}


def iter_tree(folder: Path) -> Iterator[Path]:
    yield folder
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))
