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
from redstart.testing.contracts.fixtures import ContractFixtures, PythonProgram, find_processes, with_history

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

    def test_workspace_is_mounted_at_the_real_path(self, python: PythonProgram) -> None:
        assert python("import os; print(os.getcwd())").output == f"{python.environment.mount}\n"

    @pytest.mark.parametrize("mount", ["/tmp/redstart-repo", "/home/redstart/repo", "/srv/a/b/c", "/redstart"])  # noqa: S108
    def test_any_path_can_be_the_mount(self, python: PythonProgram, mount: str) -> None:
        environment = python.environment.model_copy(update={"mount": mount})
        code = "import os; print(os.getcwd(), open('hello.txt').read()); open('x', 'w').write('writable')"
        assert python(code, environment=environment).output == f"{mount} hello\n\n"
        assert not Path(mount).exists()

    def test_real_repo_is_neither_visible_nor_changed(self, python: PythonProgram) -> None:
        repo = Path(python.environment.mount)
        repo.mkdir()
        (repo / "hello.txt").write_text("of the user")
        (repo / "secret.txt").write_text("of the user")
        completed = python(
            "import os; print(os.path.exists('secret.txt')); open('hello.txt', 'w').write('overwritten')"
        )
        assert (completed.cause, completed.output) == (ExitCause.ok, "False\n")
        assert (repo / "hello.txt").read_text() == "of the user"

    def test_path_within_the_mount_can_be_read_only(self, python: PythonProgram) -> None:
        library = Path(python.environment.mount, ".venv", "lib")
        library.mkdir(parents=True)
        (library / "module.py").write_text("installed")
        paths = (*python.environment.read_only, str(library.parent), str(library / "does-not-exist"))
        environment = python.environment.model_copy(update={"read_only": paths})
        code = (
            "print(open('.venv/lib/module.py').read(), flush=True); open('fine', 'w')\nopen('.venv/lib/module.py', 'w')"
        )
        completed = python(code, environment=environment)
        assert completed.exit_code == 1
        assert completed.output.startswith("installed\n")
        assert "Read-only file system" in completed.output
        assert (library / "module.py").read_text() == "installed"

    def test_only_objects_of_the_real_git_directory_are_visible(self, python: PythonProgram) -> None:
        environment = with_history(python.environment)
        code = (
            "import glob, os; print(os.listdir('.git'), open('.git/config').read())\nfor p in glob.glob('.git/hooks/*')"
        )
        code += " + glob.glob('.git/logs/*'): print(p)\nprint(open(open('.git/objects/info/alternates').read().strip()"
        code += " + '/written', 'w'))"
        completed = python(code, environment=environment)
        assert "password" not in completed.output
        assert "Read-only file system" in completed.output
        assert ".git/" not in completed.output.partition("Traceback")[0]

    def test_time_zone_is_always_utc(self, python: PythonProgram) -> None:
        code = "import os, time; print(time.strftime('%Z'), os.path.realpath('/etc/localtime').rpartition('/')[2])"
        assert python(code).output == "UTC UTC\n"

    @pytest.mark.parametrize("place", ["/", "/usr", "/etc", "/dev", "/run", "/var", sys.prefix, sys.base_prefix, IN])
    def test_nothing_is_written_outside_the_mount(self, python: PythonProgram, place: str) -> None:
        code = "import sys; open(sys.argv[1] + '/redstart-was-here', 'w')"
        completed = python(argv=(sys.executable, "-c", code, place), files_in={"a": ""})
        path = Path(place, "redstart-was-here")
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
            pytest.fail(f"written on the host: {path}")
        assert completed.exit_code == 1 or place == "/run"  # the sandbox has its own /run

    def test_input_files_are_read_only(self, python: PythonProgram) -> None:
        completed = python(
            argv=(sys.executable, "-c", "import sys; open(sys.argv[1], 'w')", f"{IN}/a"), files_in={"a": "a"}
        )
        assert (completed.exit_code, "Read-only file system" in completed.output) == (1, True)

    def test_host_files_cannot_be_read(self, python: PythonProgram, tmp_path: Path) -> None:
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

    def test_home_contains_only_read_only_paths(self, python: PythonProgram, tmp_path: Path) -> None:
        home = tmp_path / "home"
        for name in (".tools/a", ".ssh/key"):
            (home / name).parent.mkdir(parents=True)
            (home / name).write_text(name)
        update = {"home": str(home), "read_only": (*python.environment.read_only, str(home / ".tools"))}
        code = "import os, pathlib; h = pathlib.Path.home(); print(os.listdir(h), (h / '.tools/a').read_text())"
        completed = python(code, environment=python.environment.model_copy(update=update))
        assert completed.output == "['.tools'] .tools/a\n"

    def test_host_processes_are_not_visible(self, python: PythonProgram) -> None:
        code = "import glob, os; print(os.getpid() < 20, len(glob.glob('/proc/[0-9]*')) < 10)"
        assert python(code).output == "True True\n"

    def test_host_processes_cannot_be_signaled(self, python: PythonProgram) -> None:
        completed = python(f"import os; os.kill({os.getpid()}, 0)")
        assert "ProcessLookupError" in completed.output

    def test_host_ports_cannot_be_reached(self, python: PythonProgram) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            socket.create_connection(("127.0.0.1", port), timeout=10).close()  # it is reachable from the host
            completed = python(f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5)")
        assert (completed.exit_code, "ConnectionRefusedError" in completed.output) == (1, True)

    def test_abstract_host_socket_cannot_be_reached(self, python: PythonProgram, token: str) -> None:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"\0{token}")
            server.listen()
            completed = python(f"import socket; socket.socket(socket.AF_UNIX).connect('\\0{token}')")
        assert (completed.exit_code, "ConnectionRefusedError" in completed.output) == (1, True)

    def test_network_is_unreachable(self, python: PythonProgram) -> None:
        code = "import socket; print(socket.if_nameindex(), flush=True)"
        code += "; socket.socket(type=socket.SOCK_DGRAM).connect(('192.0.2.1', 9))"
        completed = python(code)
        assert completed.output.startswith("[(1, 'lo')]\n")
        assert "Network is unreachable" in completed.output

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

    def test_hostname_can_be_set(self, python: PythonProgram) -> None:
        code = "import socket; name = socket.gethostname(); print(name, socket.gethostbyname(name))"
        assert python(code, hostname="web-2").output == "web-2 127.0.0.1\n"
        assert "redstart" not in python(code).output

    def test_user_is_unprivileged_and_unknown_to_the_host(self, python: PythonProgram) -> None:
        code = "import os, pwd; print(os.getuid(), os.getgid(), pwd.getpwuid(os.getuid()).pw_name)"
        code += "; print([l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapEff', 'NoNewPrivs'))])"
        code += "; print([user.pw_name for user in pwd.getpwall()])"
        assert python(code).output == "1000 1000 app\n['0000000000000000', '1']\n['app', 'nobody']\n"

    def test_temporary_directories_work(self, python: PythonProgram) -> None:
        code = "import tempfile\nfor f in ('/tmp', '/var/tmp', '/dev/shm', tempfile.gettempdir()):"
        code += "\n with tempfile.TemporaryFile(dir=f) as t: print(t.write(b'12'))"
        assert python(code).output == "2\n" * 4

    def test_system_programs_run(self, python: PythonProgram) -> None:
        assert python(argv=("sh", "-c", "cat hello.txt | tr a-z A-Z && ls -d /bin/sh")).output == "HELLO\n/bin/sh\n"

    def test_sandboxed_process_is_not_root_on_the_host(self, python: PythonProgram, token: str) -> None:
        async def find_host_uids() -> set[int]:
            request = python.request(f"import time; print('up', flush=True); time.sleep(60)  # {token}")
            task = asyncio.create_task(python.sandbox.run(request))
            try:
                async with asyncio.timeout(60):
                    while not (uids := find_user_ids(token)):  # noqa: ASYNC110 (it happens in another process)
                        await asyncio.sleep(0.01)
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            return uids

        assert 0 not in asyncio.run(find_host_uids())

    @pytest.mark.parametrize("name", list(FORBIDDEN))
    def test_forbidden_system_call_is_refused(self, python: PythonProgram, name: str) -> None:
        code = f"import ctypes; libc = ctypes.CDLL(None, use_errno=True)\nprint({FORBIDDEN[name]}, ctypes.get_errno())"
        completed = python(code)
        assert completed.output.startswith("-1 "), completed.output

    @pytest.mark.parametrize("family", [40, 17, 38], ids=["vsock", "packet", "alg"])
    def test_socket_families_that_bypass_isolation_are_refused(self, python: PythonProgram, family: int) -> None:
        completed = python(f"import socket\nsocket.socket({family}, socket.SOCK_DGRAM)")
        assert (completed.exit_code, "Error" in completed.output) == (1, True)

    def test_seccomp_filter_is_active_and_privileges_cannot_be_regained(self, python: PythonProgram) -> None:
        code = "names = ('Cap', 'Seccomp:', 'NoNewPrivs')\nlines = open('/proc/self/status').read().splitlines()"
        code += "\nprint([line.split()[1] for line in lines if line.startswith(names)])"
        zero = "0000000000000000"
        assert python(code).output == f"{[zero, zero, zero, zero, zero, '1', '2']}\n"

    def test_device_nodes_cannot_be_created(self, python: PythonProgram) -> None:
        code = (
            "import os, stat\nfor kind in (stat.S_IFCHR, stat.S_IFBLK):\n  try: os.mknod('node', kind | 0o666, 0x103)"
        )
        code += "\n  except OSError as error: print('refused')\nos.mkfifo('pipe')\nprint(os.path.exists('pipe'))"
        assert python(code).output == "refused\nrefused\nTrue\n"

    def test_setuid_file_does_not_change_the_user(self, python: PythonProgram) -> None:
        code = "import os, shutil, subprocess; shutil.copy('/usr/bin/id', 'id'); os.chmod('id', 0o6755)"
        assert python(f"{code}; print(subprocess.check_output(['./id', '-u'], text=True))").output.strip() != "0"

    @pytest.mark.parametrize(
        "path", ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/hostname"]
    )
    def test_kernel_settings_cannot_be_written(self, python: PythonProgram, path: str) -> None:
        completed = python(f"open({path!r}, 'w').write('x')")
        assert (completed.exit_code, "Error" in completed.output) == (1, True)

    def test_snapshot_files_belong_to_the_sandbox_user(self, python: PythonProgram) -> None:
        code = (
            "import os; about = os.stat('hello.txt'); print(about.st_uid == os.getuid(), about.st_gid == os.getgid())"
        )
        assert python(f"{code}; os.chmod('hello.txt', 0o600); os.rename('pkg', 'moved')").output == "True True\n"


def find_user_ids(token: str) -> set[int]:
    """Find the host's user IDs of the processes that run a program with `token` directly, without a wrapper."""
    user_ids: set[int] = set()
    for pid in find_processes(token):
        with contextlib.suppress(OSError):
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if arguments[1:2] == [b"-c"] and token.encode() in arguments[2]:
                user_ids.add(Path(f"/proc/{pid}").stat().st_uid)
    return user_ids
