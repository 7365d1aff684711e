"""The malicious packages, one case each: the requirement of a project and the expected reason of the refusal."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import NamedTuple

from fake_index import FakeIndex

PYTHON, NODE = "python", "node"

SETUPTOOLS = find_spec("setuptools") is not None
"""Whether setuptools is installed. Without it, even a careless install runs no `setup.py`."""


class Case(NamedTuple):
    name: str
    language: str
    asks: str
    """The requirement, or for Node.js the name."""
    reason: str
    """Words that the refusal must contain. If empty, the package is installed and its payload must not run."""
    version: str = "1.0.0"
    """For Node.js."""
    second_index: bool = False
    lock: str = ""
    """For Node.js: the URL of the package in the project's own lock file."""
    bare: bool = True
    """Whether the payload runs when the package is installed without care."""

    def build_files(self, index: FakeIndex) -> dict[str, bytes]:
        """Return the files of a project that requires the package."""
        requirement = self.asks.replace("{index}", index.build_url("").rstrip("/"))
        if self.language == PYTHON:
            return {"requirements.txt": f"{requirement}\n".encode()}
        version = self.version.replace("{canaries}", str(index.canaries.parent))
        files = {"package.json": json.dumps({"name": "made", "dependencies": {requirement: version}}).encode()}
        if self.lock:
            entry = {"version": "1.0.0", "resolved": self.lock}
            packages = {"": {"dependencies": {requirement: version}}, f"node_modules/{requirement}": entry}
            lock = {"lockfileVersion": 3, "packages": packages}
            files["package-lock.json"] = json.dumps(lock).encode()
        return files


CASES = (
    # Names.
    Case("typosquat", PYTHON, "reqeusts", "mistaken for requests"),
    Case("doubled letter", PYTHON, "flaskk", "mistaken for flask"),
    Case("separator", PYTHON, "py-test", "mistaken for pytest"),
    Case("homoglyph", PYTHON, "r\u0435quests", "mistaken for requests", bare=False),
    Case("typosquat brought along", PYTHON, "acme-wraps", "mistaken for requests"),
    Case("two indexes", PYTHON, "acme-inner", "more than one of your indexes", second_index=True),
    # Code that runs without being imported.
    Case("path file", PYTHON, "acme-paths", "runs at every start"),
    Case("path file as data", PYTHON, "acme-data", "runs at every start"),
    Case("sitecustomize", PYTHON, "acme-site", "runs at every start"),
    Case("usercustomize", PYTHON, "acme-user", "runs at every start", bare=False),
    Case("plugin of pytest brought along", PYTHON, "acme-pulls-plugin", "plugin that pytest runs"),
    Case("conftest", PYTHON, "acme-conftest", "conftest.py", bare=False),
    Case("setup.py", PYTHON, "acme-setup", "source is not built", bare=SETUPTOOLS),
    Case("build backend", PYTHON, "acme-backend", "source is not built"),
    Case("setup.py brought along", PYTHON, "acme-pulls-source", "source is not built", bare=SETUPTOOLS),
    # Another's place.
    Case("module of Python", PYTHON, "acme-json", "module of Python itself", bare=False),
    Case("module of pytest", PYTHON, "acme-over", "not its own"),
    Case("program", PYTHON, "acme-bin", "program called git"),
    Case("archive leads up", PYTHON, "acme-up", "outside of its folder", bare=False),
    Case("archive leads to the root", PYTHON, "acme-root", "outside of its folder", bare=False),
    Case("archive with a link", PYTHON, "acme-link", "link or a device", bare=False),
    # Not what it seems.
    Case("other hash", PYTHON, "acme-hash", "hashes differ", bare=False),
    Case("withdrawn", PYTHON, "acme-yanked==1.0", "withdrawn"),
    Case("other name", PYTHON, "acme-other", "another package", bare=False),
    # Elsewhere than the index.
    Case("git", PYTHON, "acme @ git+https://127.0.0.1:1/acme", "not from the index", bare=False),
    Case("address", PYTHON, "acme-paths @ {index}/main/file/acme_paths-1.0-py3-none-any.whl", "not from the index"),
    Case("another index", PYTHON, "--index-url {index}/elsewhere/simple\nacme-elsewhere", "another place"),
    # npm.
    Case("npm typosquat", NODE, "expresss", "mistaken for express"),
    Case("npm scope", NODE, "@type/node", "mistaken for @types/node"),
    Case("npm typosquat brought along", NODE, "acme-wraps", "mistaken for express"),
    Case("npm postinstall", NODE, "acme-postinstall", ""),
    Case("npm preinstall brought along", NODE, "acme-pulls-preinstall", "when it is installed"),
    Case("npm install brought along", NODE, "acme-pulls-install", "when it is installed"),
    Case("npm postinstall brought along", NODE, "acme-pulls-postinstall", "when it is installed"),
    Case("npm build brought along", NODE, "acme-pulls-gyp", "when it is installed", bare=False),
    Case("npm bundle", NODE, "acme-pulls-bundle", "inside"),
    Case("npm alias", NODE, "lodash", "borrowed name", version="npm:acme-postinstall@1.0.0"),
    Case("npm alias brought along", NODE, "acme-borrows", "borrowed name"),
    Case("npm program", NODE, "acme-bin", "program called node", bare=False),
    Case("npm runner", NODE, "acme-runner", "program called jest", bare=False),
    Case("npm git", NODE, "acme-git", "not from the registry", version="git+file://{canaries}/acme.git", bare=False),
    Case("npm git brought along", NODE, "acme-pulls-git", "not from the registry", bare=False),
    Case("npm address brought along", NODE, "acme-pulls-remote", "not from the registry"),
    Case("npm folder", NODE, "acme-folder", "not from the registry", version="file:../acme", bare=False),
    Case("npm lock", NODE, "acme-good", "elsewhere", lock="https://127.0.0.1:1/evil.tgz", bare=False),
    Case("npm device", NODE, "acme-device", "link or a device", bare=False),
    Case("npm link", NODE, "acme-link", "link or a device", bare=False),
    Case("npm archive leads up", NODE, "acme-away", "outside of its folder", bare=False),
    Case("npm other hash", NODE, "acme-hash", "hashes differ", bare=False),
    Case("npm other name", NODE, "acme-other", "another package", bare=False),
)
