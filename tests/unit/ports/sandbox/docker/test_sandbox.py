"""Requests to a daemon and how its answers are read. No real daemon is needed: a fake one listens on a socket."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from redstart.core.errors import ConfigError, SandboxUnavailable
from redstart.core.shell import Environment, SandboxLimits
from redstart.ports.sandbox.docker.container import ContainerGroups, count_memory_kills, start_container
from redstart.ports.sandbox.docker.daemon import DaemonApi, DaemonRefused, parse_socket
from redstart.ports.sandbox.docker.image import ImageRecipe, detect_recipe, has_image
from redstart.ports.sandbox.docker.sandbox import furnish, identify_process, is_dead, measure_workspace, move_into, reap
from redstart.ports.sandbox.docker.seccomp import build_profile
from redstart.ports.sandbox.docker.spec import (
    ContainerFolders,
    User,
    WorkspaceSize,
    describe_container,
    map_to_daemon,
    parse_path_map,
)

Answer = Callable[[str, str], bytes]


@asynccontextmanager
async def serve_daemon(
    folder: Path, answer: Answer, may_answer: asyncio.Event | None = None
) -> AsyncGenerator[tuple[DaemonApi, list[str]]]:
    """Serve each request by passing its method and target to `answer`; the list holds all requests.

    With `may_answer` it answers no POST before that event is set.
    """
    requests: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, target, _ = (await reader.readline()).decode().split()
        size = 0
        while line := (await reader.readline()).strip():
            name, _, value = line.decode().partition(":")
            size = int(value) if name.lower() == "content-length" else size
        await reader.readexactly(size)
        requests.append(f"{method} {target.partition('?')[0]}")
        if may_answer and method == "POST":
            await may_answer.wait()
            requests.append("done")
        writer.write(answer(method, target))
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, folder / "d.sock")
    async with server:
        yield DaemonApi(str(folder / "d.sock")), requests


def encode_reply(body: object, status: int = 200) -> bytes:
    text = json.dumps(body).encode()
    return f"HTTP/1.1 {status} x\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text


@pytest.fixture
def place(tmp_path: Path) -> ContainerFolders:
    folders = [tmp_path / name for name in ("workspace", "in", "etc")]
    for folder in folders:
        folder.mkdir()
    return ContainerFolders(*folders)


def build_description(place: ContainerFolders, **fields: object) -> dict[str, object]:
    environment = Environment(mount="/srv/repo", python="/opt/py/bin/python", **fields.pop("environment", {}))  # type: ignore[arg-type]
    limits = SandboxLimits(memory=1 << 30, processes=50, disk=1 << 20, inodes=99, cpus=1.5)
    return describe_container(environment, limits, place, image="i:1", user=User(1000, 1000), **fields)  # type: ignore[arg-type]


def list_mounts(description: dict[str, object]) -> dict[str, tuple[str, bool]]:
    host = description["HostConfig"]
    assert isinstance(host, dict)
    return {
        mount["Target"]: (mount["Source"], mount["ReadOnly"]) for mount in host["Mounts"] if mount["Type"] == "bind"
    }


def test_container_has_no_privileges(place: ContainerFolders) -> None:
    description = build_description(place)
    host = description["HostConfig"]
    assert isinstance(host, dict)
    assert description["User"] == "65534:65534"
    assert host["NetworkMode"] == "none"
    assert host["CapDrop"] == ["ALL"]
    assert host["ReadonlyRootfs"] is True
    assert host["Privileged"] is False
    assert host["SecurityOpt"] == ["no-new-privileges", f"seccomp={build_profile()}"]
    assert "/sys" in host["MaskedPaths"]


def test_container_has_limits(place: ContainerFolders) -> None:
    host = build_description(place)["HostConfig"]
    assert isinstance(host, dict)
    assert (host["Memory"], host["MemorySwap"]) == (1 << 30, 1 << 30)
    assert host["PidsLimit"] == 53
    assert host["NanoCpus"] == 1_500_000_000
    assert all(f"size={1 << 20},nr_inodes=99" in host["Tmpfs"][path] for path in ("/tmp", "/var/tmp"))
    assert all("nosuid,nodev" in options for options in host["Tmpfs"].values())
    assert host["Ulimits"] == [{"Name": "core", "Soft": 0, "Hard": 0}]


def test_runtime_is_requested_by_name(place: ContainerFolders) -> None:
    default_host, gvisor_host = (
        build_description(place)["HostConfig"],
        build_description(place, runtime="runsc")["HostConfig"],
    )
    assert isinstance(default_host, dict)
    assert isinstance(gvisor_host, dict)
    assert "Runtime" not in default_host
    assert gvisor_host["Runtime"] == "runsc"
    assert gvisor_host["PidsLimit"] > default_host["PidsLimit"], "gVisor's own threads count too"


def test_no_host_directory_is_writable(place: ContainerFolders) -> None:
    assert all(read_only for _, read_only in list_mounts(build_description(place)).values())


@pytest.mark.parametrize("runtime", ["", "runsc"])
def test_writable_space_is_limited(place: ContainerFolders, runtime: str) -> None:
    host = build_description(place, runtime=runtime, workspace_size=WorkspaceSize(5000, 7))["HostConfig"]
    assert isinstance(host, dict)
    volumes = {volume["Target"]: volume["VolumeOptions"] for volume in host["Mounts"] if volume["Type"] == "volume"}
    options = (
        {path: volume["DriverConfig"]["Options"]["o"] for path, volume in volumes.items()} if runtime else host["Tmpfs"]
    )
    assert f"size={(1 << 20) + 5000},nr_inodes={99 + 7}," in options["/srv/repo"]
    assert f"size={1 << 20},nr_inodes=99," in options["/run/redstart/out"]
    assert all("nosuid,nodev" in options[path] for path in ("/srv/repo", "/run/redstart/out"))
    assert host["Memory"] == (1 << 30) + 5000, "files of the snapshot do not count against the command"
    assert set(volumes) == ({"/srv/repo", "/run/redstart/out"} if runtime else set())


def test_daemon_socket_is_never_mounted(place: ContainerFolders, tmp_path: Path) -> None:
    environment = {"read_only": (str(tmp_path), "/usr", "/usr/lib/python3", "/nowhere/at/all")}
    bind_mounts = list_mounts(build_description(place, environment=environment))
    assert str(tmp_path) in bind_mounts
    assert not [target for target in bind_mounts if "docker" in target or target.startswith(("/usr", "/nowhere"))]


def test_usr_local_comes_from_the_host(place: ContainerFolders) -> None:
    assert "/usr/local" in list_mounts(build_description(place, environment={"read_only": ("/usr/local",)}))


@pytest.mark.parametrize("mount", ["/", "relative", "/a/../.."])
def test_invalid_mount_is_rejected(place: ContainerFolders, mount: str) -> None:
    with pytest.raises(ConfigError):
        describe_container(Environment(mount=mount, python="p"), SandboxLimits(), place, image="i", user=User(1, 1))


def test_paths_are_mapped_when_redstart_runs_in_a_container(place: ContainerFolders, tmp_path: Path) -> None:
    path_map = parse_path_map((f"{tmp_path}=/var/on/the/machine", f"{tmp_path}/workspace=/elsewhere/"))
    bind_mounts = list_mounts(build_description(place, path_map=path_map))
    assert bind_mounts["/run/redstart/workspace"][0] == "/elsewhere"
    assert bind_mounts["/run/redstart/in"][0] == "/var/on/the/machine/in"
    assert map_to_daemon("/other", path_map) == "/other"
    assert map_to_daemon(f"{tmp_path}-not", path_map) == f"{tmp_path}-not"


@pytest.mark.parametrize("text", ["", "/here", "here=/there", "/here=there"])
def test_invalid_path_map_is_rejected(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_path_map((text,))
    assert "=" in caught.value.remedy


def test_seccomp_profile_denies_calls_a_container_allows() -> None:
    rules = json.loads(build_profile())["syscalls"]
    assert {"io_uring_setup", "bpf", "ptrace", "unshare", "keyctl"} <= set(rules[0]["names"])
    families = {rule["args"][0]["value"] for rule in rules if rule["names"] == ["socket", "socketpair"]}
    assert 40 in families
    assert not families & {1, 2, 10, 16}
    assert {rule["action"] for rule in rules} == {"SCMP_ACT_ERRNO"}


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:2375", "ssh://user@host"])
def test_endpoint_that_is_not_a_socket_file_is_rejected(address: str) -> None:
    with pytest.raises(ConfigError, match="socket file"):
        parse_socket(address)
    assert parse_socket("unix:///run/podman.sock") == "/run/podman.sock"
    assert parse_socket("") == "/var/run/docker.sock"


async def test_missing_daemon_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable) as caught:
        await DaemonApi(str(tmp_path / "none.sock")).call("GET", "/info")
    assert "DOCKER_HOST" in caught.value.remedy


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (encode_reply({"a": 1}), {"a": 1}),
        (b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n4\r\n: 2}\r\n0\r\n\r\n', {"a": 2}),
        (b'HTTP/1.1 200 OK\r\n\r\n{"a": 3}\n{"a": 4}\n', [{"a": 3}, {"a": 4}]),
        (b"HTTP/1.1 204 No Content\r\n\r\n", None),
    ],
)
async def test_answers_of_every_form_are_parsed(tmp_path: Path, raw: bytes, value: object) -> None:
    async def ask() -> object:
        async with serve_daemon(tmp_path, lambda *_: raw) as (api, _):
            return await api.call("GET", "/x")

    assert await ask() == value


@pytest.mark.parametrize("raw", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"])
async def test_dropped_daemon_connection_is_reported(tmp_path: Path, raw: bytes) -> None:
    async def ask() -> None:
        async with serve_daemon(tmp_path, lambda *_: raw) as (api, _):
            await api.call("GET", "/x")

    with pytest.raises(SandboxUnavailable, match="broke off"):
        await ask()


async def test_refusal_carries_the_message_of_the_daemon(tmp_path: Path) -> None:
    async def ask() -> None:
        async with serve_daemon(tmp_path, lambda *_: encode_reply({"message": "no"}, 409)) as (api, _):
            await api.call("GET", "/x")

    with pytest.raises(DaemonRefused, match="no") as caught:
        await ask()
    assert caught.value.status == 409


@pytest.mark.parametrize(
    ("message", "remedy"),
    [("No such image: i:1", "redstart sandbox build"), ("unknown runtime specified runsc", "sandbox.runtime")],
)
async def test_container_that_fails_to_start_is_removed(tmp_path: Path, message: str, remedy: str) -> None:

    async def start() -> list[str]:
        async with serve_daemon(tmp_path, lambda *_: encode_reply({"message": message}, 404)) as (api, requests):
            with pytest.raises(SandboxUnavailable) as caught:
                async with start_container(api, {}):
                    pass
            assert remedy in caught.value.remedy
            return requests

    requests = await start()
    assert requests[0] == "POST /containers/create"
    assert requests[-1].startswith("DELETE /containers/redstart-")


async def test_container_still_being_created_is_awaited_and_removed(tmp_path: Path) -> None:
    async def run() -> list[str]:
        may_answer = asyncio.Event()
        async with serve_daemon(tmp_path, lambda *_: encode_reply({"Id": "1"}), may_answer) as (api, requests):

            async def use() -> None:
                async with start_container(api, {}):
                    pytest.fail("the task should have been cancelled before")

            task = asyncio.create_task(use())
            async with asyncio.timeout(10):
                while not requests:  # noqa: ASYNC110 (the awaited event happens at the other end)
                    await asyncio.sleep(0)
            task.cancel()
            asyncio.get_running_loop().call_later(0.05, may_answer.set)
            with pytest.raises(asyncio.CancelledError):
                await task
            return requests

    requests = await run()
    assert requests[:2] == ["POST /containers/create", "done"]
    assert [request.partition("redstart-")[0] for request in requests[2:]] == ["DELETE /containers/"]


async def test_only_containers_of_dead_processes_are_removed(tmp_path: Path) -> None:
    own_owner = identify_process(os.getpid())
    boot, namespace, pid, start = own_owner.split("/")
    owners = {
        "mine": own_owner,
        "other-start": f"{boot}/{namespace}/{pid}/1{start}",
        "other-boot": f"0{boot}/{namespace}/{pid}/{start}",
        "other-namespace": f"{boot}/pid:[1]/{pid}/1{start}",
        "nobody": "",
    }
    containers = [{"Id": name, "Labels": {"redstart.owner": owner}} for name, owner in owners.items()]

    async def run() -> list[str]:
        async with serve_daemon(tmp_path, lambda method, _: encode_reply(containers if method == "GET" else None)) as (
            api,
            requests,
        ):
            assert await reap(api) == 2
            return requests

    assert (await run())[1:] == ["DELETE /containers/other-start", "DELETE /containers/other-boot"]
    assert not is_dead("what")


@pytest.mark.parametrize(
    ("events", "as_a_whole", "count"),
    [
        (["oom", "oom", "die 137"], False, 2),
        (["die 137"], False, 0),
        (["die 137"], True, 1),
        (["kill", "die 137"], True, 0),
        (["die 0"], True, 0),
        ([], True, 0),
    ],
)
async def test_memory_kills_are_counted(tmp_path: Path, events: list[str], as_a_whole: bool, count: int) -> None:
    event_lines = [
        json.dumps({"Action": action, "Actor": {"Attributes": {"exitCode": code} if code else {}}})
        for action, _, code in (event.partition(" ") for event in events)
    ]

    async def ask() -> int:
        raw = b"HTTP/1.1 200 OK\r\n\r\n" + "\n".join(event_lines).encode()
        async with serve_daemon(tmp_path, lambda *_: raw) as (api, _):
            return await count_memory_kills(api, "c", 0.0, whole_container=as_a_whole)

    assert await ask() == count


def test_cgroups_of_another_machine_are_not_read() -> None:
    assert ContainerGroups.find("0123456789abcdef", os.getpid()) is None
    assert ContainerGroups.find("0123456789abcdef", 1 << 30) is None


def test_snapshot_size_is_measured(tmp_path: Path) -> None:
    empty = measure_workspace(tmp_path)
    (tmp_path / "a").write_bytes(b"x" * 4097)
    (tmp_path / "b").symlink_to("/")
    assert measure_workspace(tmp_path) == (empty.size + 3 * 4096, empty.files + 2)


def test_paths_covered_by_a_mount_are_removed(tmp_path: Path) -> None:
    real_root, workspace = tmp_path / "real", tmp_path / "workspace"
    for folder in (real_root / ".venv/lib", real_root / "out/x", workspace / ".venv/lib/old", workspace / ".venv/bin"):
        folder.mkdir(parents=True)
    (workspace / "out").symlink_to(tmp_path)
    (tmp_path / "x").mkdir()
    read_only = (str(real_root / ".venv/lib"), str(real_root / "out/x"), str(real_root / "none"), "/elsewhere")
    furnish(Environment(mount=str(real_root), python="p", read_only=read_only), workspace)
    assert [path.name for path in sorted(workspace.rglob("*"))] == [".venv", "bin"]
    assert (tmp_path / "x").is_dir()


def test_used_directory_is_cleared_before_the_move(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "a/b").mkdir(parents=True)
    (target / "left/deep").mkdir(parents=True)
    (target / "left").chmod(0)
    (target / "link").symlink_to(source)
    move_into(source, target)
    assert [path.name for path in target.rglob("*")] == ["a", "b"]


def test_recipe_names_its_image() -> None:
    recipe, other_recipe = ImageRecipe("bookworm"), ImageRecipe("trixie")
    assert recipe.name == ImageRecipe("bookworm").name
    assert len({recipe.name, other_recipe.name, ImageRecipe("bookworm", ("python3",)).name}) == 3
    command = recipe.get_build_command("mmdebstrap", Path("/x.tar"))
    assert command[-2:] == ["bookworm", "/x.tar"]
    assert any("nodejs" in argument and "python3-pytest" in argument for argument in command)


@pytest.mark.parametrize(
    ("text", "suite"),
    [
        ("ID=debian\nVERSION_CODENAME=trixie\n", "trixie"),
        ('ID=ubuntu\nID_LIKE="debian"\nVERSION_CODENAME=noble\n', "noble"),
        ("ID=fedora\nVERSION_CODENAME=x\n", "bookworm"),
        ("", "bookworm"),
    ],
)
def test_release_of_the_host_is_detected(tmp_path: Path, text: str, suite: str) -> None:
    (tmp_path / "os-release").write_text(text)
    assert detect_recipe(tmp_path / "os-release").suite == suite


@pytest.mark.parametrize(("status", "expected"), [(200, True), (404, False)])
async def test_existing_image_is_detected(tmp_path: Path, status: int, expected: bool) -> None:
    async def ask() -> bool:
        async with serve_daemon(tmp_path, lambda *_: encode_reply({}, status)) as (api, _):
            return await has_image(api, "i:1")

    assert await ask() is expected
