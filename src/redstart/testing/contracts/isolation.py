"""The contract of sandboxes that isolate. Use it like the contract in `sandbox.py`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from pathlib import Path

import pytest

from redstart.core.shell import IN, ExitCause
from redstart.testing.contracts.ground import ContractFixtures, PythonProgram, living, with_history

FORBIDDEN = {
    "unshare": "libc.unshare(0x10000000)",
    "mount": "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
    "umount": "libc.umount2(b'/proc', 0)",
    "chroot": "libc.chroot(b'/tmp')",
    "pivot_root": "libc.syscall(155 if __import__('platform').machine() == 'x86_64' else 41, b'/tmp', b'/tmp')",
    "ptrace": "libc.ptrace(16, 1, None, None)",
    "process_vm_readv": "libc.process_vm_readv(1, None, 0, None, 0, 1)",
    "io_uring": "libc.syscall(425, 1, ctypes.create_string_buffer(120))",
    "bpf": "libc.syscall(321 if __import__('platform').machine() == 'x86_64' else 280, 0, None, 0)",
    "keyring": "libc.syscall(250 if __import__('platform').machine() == 'x86_64' else 219, 0, -3, 1)",
    "userfaultfd": "libc.syscall(323 if __import__('platform').machine() == 'x86_64' else 282, 0)",
    "setns": "libc.setns(0, 0)",
    "host name": "libc.sethostname(b'x', 1)",
    "clock": "libc.settimeofday(ctypes.create_string_buffer(16), None)",
}
"""Calls that an isolating sandbox refuses, each as Python text."""


class IsolationContract(ContractFixtures):
    """What an isolating sandbox separates from the host."""

    def test_the_workspace_is_at_the_real_path(self, python: PythonProgram) -> None:
        assert python("import os; print(os.getcwd())").output == f"{python.environment.mount}\n"

    @pytest.mark.parametrize("mount", ["/tmp/redstart-repo", "/home/redstart/repo", "/srv/a/b/c", "/redstart"])  # noqa: S108
    def test_any_path_can_be_the_mount(self, python: PythonProgram, mount: str) -> None:
        environment = python.environment.model_copy(update={"mount": mount})
        code = "import os; print(os.getcwd(), open('hello.txt').read()); open('x', 'w').write('writable')"
        assert python(code, environment=environment).output == f"{mount} hello\n\n"
        assert not Path(mount).exists()

    def test_the_real_repo_is_neither_seen_nor_changed(self, python: PythonProgram) -> None:
        real = Path(python.environment.mount)
        real.mkdir()
        (real / "hello.txt").write_text("of the user")
        (real / "secret.txt").write_text("of the user")
        done = python("import os; print(os.path.exists('secret.txt')); open('hello.txt', 'w').write('overwritten')")
        assert (done.cause, done.output) == (ExitCause.ok, "False\n")
        assert (real / "hello.txt").read_text() == "of the user"

    def test_a_read_only_path_within_the_mount(self, python: PythonProgram) -> None:
        kept = Path(python.environment.mount, ".venv", "lib")
        kept.mkdir(parents=True)
        (kept / "module.py").write_text("installed")
        paths = (*python.environment.read_only, str(kept.parent), str(kept / "does-not-exist"))
        environment = python.environment.model_copy(update={"read_only": paths})
        code = (
            "print(open('.venv/lib/module.py').read(), flush=True); open('fine', 'w')\nopen('.venv/lib/module.py', 'w')"
        )
        done = python(code, environment=environment)
        assert done.exit_code == 1
        assert done.output.startswith("installed\n")
        assert "Read-only file system" in done.output
        assert (kept / "module.py").read_text() == "installed"

    def test_of_the_real_git_folder_only_objects_are_seen(self, python: PythonProgram) -> None:
        environment = with_history(python.environment)
        code = (
            "import glob, os; print(os.listdir('.git'), open('.git/config').read())\nfor p in glob.glob('.git/hooks/*')"
        )
        code += " + glob.glob('.git/logs/*'): print(p)\nprint(open(open('.git/objects/info/alternates').read().strip()"
        code += " + '/written', 'w'))"
        done = python(code, environment=environment)
        assert "password" not in done.output
        assert "Read-only file system" in done.output
        assert ".git/" not in done.output.partition("Traceback")[0]

    def test_the_time_zone_is_the_same_on_every_machine(self, python: PythonProgram) -> None:
        code = "import os, time; print(time.strftime('%Z'), os.path.realpath('/etc/localtime').rpartition('/')[2])"
        assert python(code).output == "UTC UTC\n"

    @pytest.mark.parametrize("place", ["/", "/usr", "/etc", "/dev", "/run", "/var", sys.prefix, sys.base_prefix, IN])
    def test_nothing_is_written_outside_the_mount(self, python: PythonProgram, place: str) -> None:
        code = "import sys; open(sys.argv[1] + '/redstart-was-here', 'w')"
        done = python(argv=(sys.executable, "-c", code, place), files_in={"a": ""})
        left = Path(place, "redstart-was-here")
        with contextlib.suppress(FileNotFoundError):
            left.unlink()
            pytest.fail(f"written on the host: {left}")
        assert done.exit_code == 1 or place == "/run"  # the sandbox has its own /run

    def test_files_that_go_in_cannot_be_changed(self, python: PythonProgram) -> None:
        done = python(argv=(sys.executable, "-c", "import sys; open(sys.argv[1], 'w')", f"{IN}/a"), files_in={"a": "a"})
        assert (done.exit_code, "Read-only file system" in done.output) == (1, True)

    def test_a_file_of_the_host_cannot_be_read(self, python: PythonProgram, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text("of the host")
        code = f"""
import os
os.symlink({str(secret)!r}, 'link')
for path in ({str(secret)!r}, 'link', '/etc/shadow', '/etc/machine-id', '/etc/resolv.conf', '/root/.ssh', '/boot',
             '/proc/1/root' + {str(secret)!r}, '/var/log', '/var/run/docker.sock', '/run/docker.sock', '/sys'):
    print(path if os.path.exists(path) else 'absent')
"""
        assert python(code).output == "absent\n" * 12

    def test_home_is_empty(self, python: PythonProgram) -> None:
        assert python("import os; print(os.environ['HOME'], os.listdir(os.environ['HOME']))").output == (
            "/home/redstart []\n"
        )

    def test_home_is_empty_but_for_what_is_read_only(self, python: PythonProgram, tmp_path: Path) -> None:
        home = tmp_path / "home"
        for name in (".tools/a", ".ssh/key"):
            (home / name).parent.mkdir(parents=True)
            (home / name).write_text(name)
        update = {"home": str(home), "read_only": (*python.environment.read_only, str(home / ".tools"))}
        code = "import os, pathlib; h = pathlib.Path.home(); print(os.listdir(h), (h / '.tools/a').read_text())"
        done = python(code, environment=python.environment.model_copy(update=update))
        assert done.output == "['.tools'] .tools/a\n"

    def test_processes_of_the_host_are_not_seen(self, python: PythonProgram) -> None:
        code = "import glob, os; print(os.getpid() < 20, len(glob.glob('/proc/[0-9]*')) < 10)"
        assert python(code).output == "True True\n"

    def test_a_process_of_the_host_cannot_be_signalled(self, python: PythonProgram) -> None:
        done = python(f"import os; os.kill({os.getpid()}, 0)")
        assert "ProcessLookupError" in done.output

    def test_the_host_cannot_be_reached(self, python: PythonProgram) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            socket.create_connection(("127.0.0.1", port), timeout=10).close()  # it is reachable from the host
            done = python(f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5)")
        assert (done.exit_code, "ConnectionRefusedError" in done.output) == (1, True)

    def test_an_abstract_socket_of_the_host_cannot_be_reached(self, python: PythonProgram, token: str) -> None:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"\0{token}")
            server.listen()
            done = python(f"import socket; socket.socket(socket.AF_UNIX).connect('\\0{token}')")
        assert (done.exit_code, "ConnectionRefusedError" in done.output) == (1, True)

    def test_there_is_no_way_out(self, python: PythonProgram) -> None:
        code = "import socket; print(socket.if_nameindex(), flush=True)"
        code += "; socket.socket(type=socket.SOCK_DGRAM).connect(('192.0.2.1', 9))"
        done = python(code)
        assert done.output.startswith("[(1, 'lo')]\n")
        assert "Network is unreachable" in done.output

    def test_loopback_works(self, python: PythonProgram) -> None:
        code = """
import socket
for host in ('127.0.0.1', 'localhost', socket.gethostname()):
    with socket.create_server((host, 0)) as server:
        client = socket.create_connection(server.getsockname(), timeout=10)
        client.sendall(b'hello')
        print(server.accept()[0].recv(5))
"""
        assert python(code).output == "b'hello'\n" * 3

    def test_the_host_has_the_name_that_is_asked_for(self, python: PythonProgram) -> None:
        code = "import socket; name = socket.gethostname(); print(name, socket.gethostbyname(name))"
        assert python(code, hostname="web-2").output == "web-2 127.0.0.1\n"
        assert "redstart" not in python(code).output

    def test_the_user_is_nobody_of_the_host(self, python: PythonProgram) -> None:
        code = "import os, pwd; print(os.getuid(), os.getgid(), pwd.getpwuid(os.getuid()).pw_name)"
        code += "; print([l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapEff', 'NoNewPrivs'))])"
        code += "; print([user.pw_name for user in pwd.getpwall()])"
        assert python(code).output == "1000 1000 app\n['0000000000000000', '1']\n['app', 'nobody']\n"

    def test_temporary_folders_work(self, python: PythonProgram) -> None:
        code = "import tempfile\nfor f in ('/tmp', '/var/tmp', '/dev/shm', tempfile.gettempdir()):"
        code += "\n with tempfile.TemporaryFile(dir=f) as t: print(t.write(b'12'))"
        assert python(code).output == "2\n" * 4

    def test_programs_of_the_system_run(self, python: PythonProgram) -> None:
        assert python(argv=("sh", "-c", "cat hello.txt | tr a-z A-Z && ls -d /bin/sh")).output == "HELLO\n/bin/sh\n"

    def test_on_the_host_it_is_not_root(self, python: PythonProgram, token: str) -> None:
        async def uid_out_here() -> set[int]:
            request = python.request(f"import time; print('up', flush=True); time.sleep(60)  # {token}")
            task = asyncio.create_task(python.sandbox.run(request))
            try:
                async with asyncio.timeout(60):
                    while not (found := commands(token)):  # noqa: ASYNC110 (it happens in another process)
                        await asyncio.sleep(0.01)
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            return found

        assert 0 not in asyncio.run(uid_out_here())

    @pytest.mark.parametrize("name", list(FORBIDDEN))
    def test_a_forbidden_call(self, python: PythonProgram, name: str) -> None:
        code = f"import ctypes; libc = ctypes.CDLL(None, use_errno=True)\nprint({FORBIDDEN[name]}, ctypes.get_errno())"
        done = python(code)
        assert done.output.startswith("-1 "), done.output

    @pytest.mark.parametrize("family", [40, 17, 38], ids=["vsock", "packet", "alg"])
    def test_a_family_of_sockets_that_leads_out(self, python: PythonProgram, family: int) -> None:
        done = python(f"import socket\nsocket.socket({family}, socket.SOCK_DGRAM)")
        assert (done.exit_code, "Error" in done.output) == (1, True)

    def test_a_filter_is_on_and_no_right_can_be_won_back(self, python: PythonProgram) -> None:
        code = "names = ('Cap', 'Seccomp:', 'NoNewPrivs')\nlines = open('/proc/self/status').read().splitlines()"
        code += "\nprint([line.split()[1] for line in lines if line.startswith(names)])"
        zero = "0000000000000000"
        assert python(code).output == f"{[zero, zero, zero, zero, zero, '1', '2']}\n"

    def test_a_device_cannot_be_made(self, python: PythonProgram) -> None:
        code = (
            "import os, stat\nfor kind in (stat.S_IFCHR, stat.S_IFBLK):\n  try: os.mknod('node', kind | 0o666, 0x103)"
        )
        code += "\n  except OSError as error: print('refused')\nos.mkfifo('pipe')\nprint(os.path.exists('pipe'))"
        assert python(code).output == "refused\nrefused\nTrue\n"

    def test_a_file_that_changes_the_user_does_not(self, python: PythonProgram) -> None:
        code = "import os, shutil, subprocess; shutil.copy('/usr/bin/id', 'id'); os.chmod('id', 0o6755)"
        assert python(f"{code}; print(subprocess.check_output(['./id', '-u'], text=True))").output.strip() != "0"

    @pytest.mark.parametrize(
        "path", ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/hostname"]
    )
    def test_the_kernel_cannot_be_told_anything(self, python: PythonProgram, path: str) -> None:
        done = python(f"open({path!r}, 'w').write('x')")
        assert (done.exit_code, "Error" in done.output) == (1, True)

    def test_files_of_the_snapshot_belong_to_the_user_inside(self, python: PythonProgram) -> None:
        code = (
            "import os; about = os.stat('hello.txt'); print(about.st_uid == os.getuid(), about.st_gid == os.getgid())"
        )
        assert python(f"{code}; os.chmod('hello.txt', 0o600); os.rename('pkg', 'moved')").output == "True True\n"


def commands(token: str) -> set[int]:
    """Find the host's user IDs of the processes that run a program with `token` directly, without a wrapper."""
    found: set[int] = set()
    for pid in living(token):
        with contextlib.suppress(OSError):
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if arguments[1:2] == [b"-c"] and token.encode() in arguments[2]:
                found.add(Path(f"/proc/{pid}").stat().st_uid)
    return found
