"""A new user's first session, recorded in a real terminal: from the installation to the applied patch.

The bench types four commands into a shell in tmux, and one more that shows that the tests pass. The project is a real
one of `projects.json` with its seeded bug, Redstart is installed from its wheel, and the model is a scripted server on
loopback, set by the documented variables. The screen is printed as text, with IDs, times and paths made the same on
every machine. `docs/session.md` holds such a record; a test records the session again and compares.

It needs git, tmux, bubblewrap and a package index. `--write` puts the record into the page.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import _paths  # noqa: F401
from _environments import install_tool, run, run_checked, run_pip
from _figures import expect_at_most, expect_equal, print_figures
from real.prepare import Ready, load_projects, prepare
from real_repos import mutate
from support.scenarios import parse_question
from support.server import Request, ScriptedServer

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "session.md"
PROJECT = "python-slugify"
COMMANDS = ("uv tool install --quiet redstart", "redstart doctor", "redstart fix", "redstart show")
ANSWERS = {"redstart fix": "y"}
"""The answers to type if a command asks."""
QUESTION = "[y/N]:"
AFTERWARDS = "pytest -q"
PROMPT = "$"
WIDTH, HEIGHT, HISTORY = 100, 50, 2000
WITHIN = 120.0
"""Time limit of a single command."""
WHY = "A text that is exactly as long as the limit fits and need not be cut."
CARD = {
    "summary": "A text of exactly the greatest length was cut.",
    "root_cause": "The comparison left the limit itself out.",
    "fix": "Compare with <=.",
    "debug_steps": [],
}
FIXED_WORDS = (
    (r"\b[0-9a-f]{12}\b", "4f1c09e2ab37"),
    (r"(?m)^( +\d+  \w.*| {15}\S.*)  \d+\.\d s$", r"\1"),  # the time of a step, shown if it took long
    (r"\b\d+\.\d s\b", "4.2 s"),
    (r"\bin \d+\.\d+s\b", "in 1.20s"),
    (r"\b[\d,]+ \+ [\d,]+ tokens\b", "7,100 + 200 tokens"),
    (r"(?<!\+ )\b[\d,]+ tokens\b", "7,300 tokens"),
    (r"\$\d\.\d{4}\b", "$0.0140"),
    (r"\$\d\.\d{3}\b", "$0.014"),
    (r"(ok +python +)[\d.]+", r"\g<1>3.11.7"),
    (r"(ok +git +)[\d.]+", r"\g<1>2.39.5"),
    (r"(ok +ripgrep +)[\d.]+", r"\g<1>13.0.0"),
    (r"(ok +node +)[\d.]+", r"\g<1>20.20.2"),
    (r"\bstarts in \d+ ms\b", "starts in 98 ms"),
    (r"\b127\.0\.0\.1:\d+", "127.0.0.1:42967"),
    (r"(?ms)^  (?:ok|-)   +docker .*?(?=^  ok +sandbox)", ""),  # not every machine has Docker
    (r"\b[\d.]+ [GT]B free\b", "83.4 GB free"),
)
_BLOCK = re.compile(r"(?<=<!-- session -->\n```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)


class SessionError(Exception):
    """A command of the session failed or timed out."""


class Terminal:
    """A shell in tmux, with a server of its own."""

    def __init__(self, folder: Path, home: Path, variables: dict[str, str]) -> None:
        self._socket = home.parent / "tmux"
        self._ends = home.parent / "ends"
        # tmux gives a new pane the PATH of the client that opens it.
        self._environ = {"LC_ALL": "C.UTF-8", "PATH": variables["PATH"]}
        shell_variables = {
            **variables,
            # After each command the shell writes its exit code.
            "PROMPT_COMMAND": f"echo $? >>{self._ends}; PS1='{PROMPT} '; tmux -S {self._socket} wait-for -S ended",
        }
        settings = [argument for name, value in shell_variables.items() for argument in ("-e", f"{name}={value}")]
        start = ["new-session", "-d", "-x", str(WIDTH), "-y", str(HEIGHT), "-c", str(folder), *settings]
        self._run_tmux("-f", "/dev/null", "set-option", "-g", "history-limit", str(HISTORY), ";", *start, "bash --norc")

    def type(self, line: str) -> None:
        """Type a command and wait for its end. Raises `SessionError` if it fails."""
        self._run_tmux("send-keys", "-l", line)
        self._run_tmux("send-keys", "Enter")
        if line in ANSWERS:
            self._answer(ANSWERS[line])
        self.wait()
        code = self._ends.read_text().splitlines()[-1]
        if code != "0":
            raise SessionError(f"`{line}` exited with {code}:\n{self.read_screen()}")

    def _answer(self, text: str) -> None:
        """Type an answer once the command asks. Raises `SessionError` if it does not ask in time."""
        deadline = time.monotonic() + WITHIN
        while QUESTION not in self.read_screen():
            if time.monotonic() > deadline:
                raise SessionError(f"the command does not ask; the screen:\n{self.read_screen()}")
        self._run_tmux("send-keys", "-l", text)
        self._run_tmux("send-keys", "Enter")

    def read_screen(self) -> str:
        """Return everything shown so far, with wrapped lines joined."""
        return "\n" + self._run_tmux("capture-pane", "-p", "-J", "-S", "-")

    def close(self) -> None:
        run(["tmux", "-S", self._socket, "kill-server"], ROOT)

    def wait(self) -> None:
        """Wait for the prompt. Raises `SessionError` if it does not appear in time."""
        self._run_tmux("wait-for", "ended")
        deadline = time.monotonic() + WITHIN
        # The prompt appears after the end is signaled, and anything typed before it would be shown twice.
        while not self.read_screen().rstrip().endswith(f"\n{PROMPT}"):
            if time.monotonic() > deadline:
                raise SessionError(f"there is no prompt; the screen:\n{self.read_screen()}")

    def _run_tmux(self, *arguments: str) -> str:
        try:
            completed = subprocess.run(
                ["tmux", "-S", str(self._socket), *arguments],
                env=self._environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=WITHIN,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise SessionError(f"not finished within {WITHIN:.0f} seconds; the screen:\n{self.read_screen()}") from None
        if completed.returncode:
            raise SessionError(f"tmux {arguments[0]}: {completed.stderr.strip()}")
        return completed.stdout


@contextmanager
def open_terminal(folder: Path, home: Path, variables: dict[str, str]) -> Iterator[Terminal]:
    session = Terminal(folder, home, variables)
    try:
        session.wait()
        yield session
    finally:
        session.close()


def build_wheel(directory: Path) -> Path:
    """Build the wheel of this checkout from a copy, so that the checkout stays clean, and return the wheel's folder."""
    source = directory / "source"
    ignored = shutil.ignore_patterns(".venv", ".git", "__pycache__", ".*_cache", ".ci-cache", "dist")
    shutil.copytree(ROOT, source, ignore=ignored)
    run_pip("wheel", "--quiet", "--no-deps", "--wheel-dir", directory / "wheel", source)
    return directory / "wheel"


def write_pins(directory: Path) -> Path:
    """Write the locked versions of Redstart's dependencies, so that a new release of one does not change the record."""
    lines = (ROOT / "requirements" / "base.txt").read_text().splitlines()
    pinned_lines = [line.rstrip("\\ ") for line in lines if "==" in line and not line.lstrip().startswith("--hash")]
    path = directory / "pins.txt"
    path.write_text("\n".join(pinned_lines) + "\n")
    return path


def build_variables(ready: Ready, home: Path, directory: Path, model_url: str) -> dict[str, str]:
    """Return the variables of the new user's shell: the project's environment is active, and a model's key is set."""
    programs = home / ".local" / "bin"
    uv = install_tool("uv", directory / "tools")
    program_folders = [str(ready.python.parent), str(programs), str(uv.parent)]
    index = {name: value for name, value in os.environ.items() if name.startswith(("SSL_CERT_", "UV_INDEX"))}
    config = Path.home() / ".config" / "uv" / "uv.toml"
    return {
        **index,
        **({"UV_CONFIG_FILE": str(config)} if config.exists() else {}),
        "HOME": str(home),
        "PATH": ":".join([*program_folders, "/usr/local/bin", "/usr/bin", "/bin"]),
        "LANG": "C.UTF-8",
        "VIRTUAL_ENV": str(ready.venv),
        "UV_TOOL_DIR": str(home / ".local" / "share" / "uv" / "tools"),
        "UV_TOOL_BIN_DIR": str(programs),
        "UV_FIND_LINKS": str(build_wheel(directory)),
        "UV_CONSTRAINT": str(write_pins(directory)),
        "UV_PYTHON": sys.executable,
        "UV_CACHE_DIR": run_checked([uv, "cache", "dir"], directory).strip(),
        "OPENAI_API_KEY": "scripted",
        "REDSTART_MODELS__BASE_URL": model_url,
    }


def record(directory: Path) -> str:
    """Record the session in a fresh home folder in `directory`, as text. Raises `SessionError` if a command fails."""
    (project,) = (item for item in load_projects() if item.name == PROJECT)
    home = directory / "home"
    home.mkdir()
    ready = prepare(project, home, directory, PROJECT)
    answer = mutate(project.mutation, ready.root, project.mutation.file).replace("WHY: seeded", f"WHY: {WHY}")

    def reply(request: Request) -> str:
        return answer if parse_question(request) == "patch" else json.dumps(CARD)

    with (
        ScriptedServer(reply) as server,
        open_terminal(ready.root, home, build_variables(ready, home, directory, server.openai_url)) as session,
    ):
        for line in (*COMMANDS, AFTERWARDS):
            session.type(line)
        screen = session.read_screen()
    return normalize_screen(screen, home)


def normalize_screen(screen: str, home: Path) -> str:
    """Make the text the same for every recording: replace everything that depends on the machine or the day.

    This covers the home folder, IDs, times, sizes, versions of programs, and figures that depend on a request's length.
    """
    screen = screen.replace(str(home), "~")
    for pattern, replacement in FIXED_WORDS:
        screen = re.sub(pattern, replacement, screen)
    lines = [line.rstrip() for line in screen.strip().splitlines()]
    while lines[-1] in ("", PROMPT):
        lines.pop()
    return "\n".join(lines) + "\n"


def on_page() -> str:
    match = _BLOCK.search(PAGE.read_text())
    if match is None:
        raise SessionError(f"{PAGE.name} holds no record")
    return match[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="no difference: one session is short")
    parser.add_argument("--write", action="store_true", help="put the record into the page")
    args = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="redstart-session-") as name:
        recorded = record(Path(name).resolve())
    seconds = time.monotonic() - began
    print(recorded)
    if args.write:
        PAGE.write_text(_BLOCK.sub(lambda _: recorded, PAGE.read_text()))
    page = on_page()
    is_same = recorded == page
    if not is_same:
        print("\n".join(difflib.unified_diff(page.splitlines(), recorded.splitlines(), "page", "now", lineterm="")))
    figures = [
        expect_at_most("commands", len(COMMANDS), 5),
        expect_equal("page_is_true", int(is_same), 1),
        expect_at_most("seconds", seconds, 90),
    ]
    print_figures("session", figures)


if __name__ == "__main__":
    main()
