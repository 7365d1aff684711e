"""Eight secrets are planted around a whole run, and the repo's tests try twenty-two ways to carry them out.

Afterwards the test searches everything that the run left: its output, its events, the run store with journal and blobs,
logs, patches, the repo itself, and the requests to the model. The same payload carries a marker that is not secret; it
shows that a way is open. The same tests without a sandbox must find every secret, or the result would prove nothing.
"""

from __future__ import annotations

import base64
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.server import ScriptedServer, Wire
from support.user import Ran, User

HERE = Path(__file__).parent
SPY = (HERE / "spy" / "spy.py").read_text()
WAYS = re.findall(r"^def way_(\w+)", SPY, re.MULTILINE)
ENDS_THE_RUN = {"exit_code", "killed"}
"""Ways that end the run, so that no other way can follow."""
SILENT = {"exit_code", "killed", "git_object", "new_file", "file_name", "network", "out_folder", "suite_property"}
"""Ways of which nothing is stored, so that not even the marker can arrive."""
KINDS = ("agent", "ssh", "aws", "dotenv", "remote", "netrc", "store", "neighbour")

FIX = """<<<<<<< SEARCH
    return 1
=======
    return 2
>>>>>>> REPLACE
"""
ANSWER = f"shop.py\n```python\n{FIX}```\n"


class Ground:
    """A user's machine with the eight secrets, and a repo with a spy in its tests."""

    def __init__(self, folder: Path, channels: list[str]) -> None:
        self.mark = f"carried-{secrets.token_hex(8)}"
        self.secrets = {kind: f"planted-{secrets.token_hex(16)}" for kind in KINDS}
        self.folder, self.repo = folder, folder / "projects" / "shop"
        self.user = User(folder, Path(sys.prefix))
        self.user.environ |= {"SHOP_API_KEY": self.secrets["agent"], "REDSTART_LIMITS__ITERATIONS": "1"}
        s = self.secrets
        self._write(".ssh/id_ed25519", s["ssh"])
        self._write(".aws/credentials", f"[default]\naws_secret_access_key = {s['aws']}\n")
        self._write(".netrc", f"machine example.com login ann password {s['netrc']}\n")
        self._write(".local/share/redstart/redstart.db", f"SQLite format 3\0{s['store']}")
        self._write(".git-credentials", f"https://ann:{s['remote']}@example.com\n")
        self.neighbour = subprocess.Popen(
            [sys.executable, "-c", "input()"], env={"NEIGHBOUR_KEY": s["neighbour"]}, stdin=subprocess.PIPE
        )
        self._write_project(channels)

    def _write_project(self, channels: list[str]) -> None:
        settings_code = (
            f"HOME = {str(self.folder)!r}\nMARK = {self.mark!r}\nWAYS = {channels!r}\nPID = {self.neighbour.pid}\n"
        )
        files = {
            ".gitignore": ".env\n",
            ".env": f"KEY={self.secrets['dotenv']}\n",
            "shop.py": "def price():\n    return 1\n",
            "spy.py": SPY,
            "told.py": settings_code,
            "conftest.py": (HERE / "spy" / "conftest_of_the_repo.py").read_text(),
            "test_shop.py": "from shop import price\n\n\ndef test_price():\n    assert price() == 2\n",
        }
        for name, text in files.items():
            self._write(f"projects/shop/{name}", text)
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        remote = f"https://ann:{self.secrets['remote']}@example.com/shop"
        for arguments in (
            ("init", "-q"),
            ("add", "-A"),
            (*identity, "commit", "-qm", "all"),
            ("remote", "add", "o", remote),
        ):
            subprocess.run(["git", *arguments], cwd=self.repo, check=True)

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def fix(self, *flags: str) -> tuple[Ran, str]:
        """Run a fix; return its result and all text that was sent to the model."""
        with ScriptedServer(lambda request: ANSWER) as server:
            self.user.uses(server, Wire.openai)
            result = self.user.redstart("fix", self.repo, "--json", "--patch", self.folder / "fix.patch", *flags)
            sent_text = "\n".join(request.text for request in server.requests)
        return result, sent_text

    def iter_stored_files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the name and content of every file of the run store and the user, except the planted ones."""
        planted = {
            ".ssh",
            ".aws",
            ".netrc",
            ".local",
            ".git-credentials",
            "projects/shop/.env",
            "projects/shop/.git/config",
        }
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder).as_posix()
            if not any(name == prefix or name.startswith(f"{prefix}/") for prefix in planted):
                yield name, name.encode() + (b"\n" + path.read_bytes() if path.is_file() else b"")

    def find_leaks(self, text: str, ran: Ran, sent_text: str) -> set[str]:
        """Find the places that contain the text in any of its encodings."""
        places = [
            ("printed", ran.out.encode()),
            ("errors", ran.err.encode()),
            ("model", sent_text.encode()),
            *self.iter_stored_files(),
        ]
        return {name for name, content in places if any(form in content for form in list_encodings(text))}

    def close(self) -> None:
        self.neighbour.communicate(b"\n")


def list_encodings(text: str) -> list[bytes]:
    """List the text plain, reversed, in hex and in base64 at any offset. Its prefix is cut off; it is not secret."""
    raw = text.rpartition("-")[2].encode()
    base64_forms = [base64.b64encode(b"\0" * shift + raw)[4:-4] for shift in range(3)]
    return [raw, raw[::-1], raw.hex().encode(), *base64_forms]


@pytest.fixture
def ground(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Ground]:
    new_ground = Ground(tmp_path / "u", request.param)
    try:
        yield new_ground
    finally:
        new_ground.close()


TOGETHER = [channel for channel in WAYS if channel not in ENDS_THE_RUN]
EACH = [pytest.param([channel], id=channel, marks=pytest.mark.soak) for channel in WAYS]


def test_there_are_eight_secrets_and_twenty_leak_channels():
    assert len(KINDS) == 8
    assert len(WAYS) >= 20


@pytest.mark.parametrize("ground", [pytest.param(TOGETHER, id="together"), *EACH], indirect=True)
def test_no_secret_leaks(ground: Ground, request: pytest.FixtureRequest):
    result, sent_text = ground.fix()
    assert result.code in (0, 1, 3, 4, 9), result.out + result.err
    assert {
        kind: locations
        for kind, secret in ground.secrets.items()
        if (locations := ground.find_leaks(secret, result, sent_text))
    } == {}
    channels = request.node.callspec.params["ground"]
    if not set(channels) <= SILENT:
        assert ground.find_leaks(ground.mark, result, sent_text) - {"projects/shop/told.py"}, (
            "the way is not open: nothing was tried"
        )


@pytest.mark.parametrize("ground", [TOGETHER], indirect=True)
def test_all_secrets_leak_without_a_sandbox(ground: Ground):
    result = ground.user.python("-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", cwd=ground.repo)
    leaked_kinds = {kind for kind, secret in ground.secrets.items() if ground.find_leaks(secret, result, "")}
    assert leaked_kinds == set(KINDS), result.out + result.err
