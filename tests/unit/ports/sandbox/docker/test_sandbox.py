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
from redstart.ports.sandbox.docker.container import ContainerGroups, killed_for_memory, started
from redstart.ports.sandbox.docker.daemon import DaemonApi, DaemonRefused, socket_of
from redstart.ports.sandbox.docker.image import ImageRecipe, has_image, recipe_here
from redstart.ports.sandbox.docker.sandbox import furnish, is_dead, move_into, owner_of, reap, room_of
from redstart.ports.sandbox.docker.seccomp import profile
from redstart.ports.sandbox.docker.spec import ContainerFolders, User, WorkspaceSize, described, outside, parse_path_map

Answer = Callable[[str, str], bytes]


@asynccontextmanager
async def daemon(
    folder: Path, answer: Answer, holds: asyncio.Event | None = None
) -> AsyncGenerator[tuple[DaemonApi, list[str]]]:
    """Serve each request by passing its method and target to `answer`; the list holds all requests.

    With `may_answer` it answers no POST before that event is set.
    """
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, target, _ = (await reader.readline()).decode().split()
        size = 0
        while line := (await reader.readline()).strip():
            name, _, value = line.decode().partition(":")
            size = int(value) if name.lower() == "content-length" else size
        await reader.readexactly(size)
        asked.append(f"{method} {target.partition('?')[0]}")
        if holds and method == "POST":
            await holds.wait()
            asked.append("done")
        writer.write(answer(method, target))
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, folder / "d.sock")
    async with server:
        yield DaemonApi(str(folder / "d.sock")), asked


def reply(body: object, status: int = 200) -> bytes:
    text = json.dumps(body).encode()
    return f"HTTP/1.1 {status} x\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text


@pytest.fixture
def place(tmp_path: Path) -> ContainerFolders:
    folders = [tmp_path / name for name in ("workspace", "in", "etc")]
    for folder in folders:
        folder.mkdir()
    return ContainerFolders(*folders)


def made(place: ContainerFolders, **fields: object) -> dict[str, object]:
    environment = Environment(mount="/srv/repo", python="/opt/py/bin/python", **fields.pop("environment", {}))  # type: ignore[arg-type]
    limits = SandboxLimits(memory=1 << 30, processes=50, disk=1 << 20, inodes=99, cpus=1.5)
    return described(environment, limits, place, image="i:1", user=User(1000, 1000), **fields)  # type: ignore[arg-type]


def mounts(description: dict[str, object]) -> dict[str, tuple[str, bool]]:
    host = description["HostConfig"]
    assert isinstance(host, dict)
    return {each["Target"]: (each["Source"], each["ReadOnly"]) for each in host["Mounts"] if each["Type"] == "bind"}


def test_a_container_has_no_rights(place: ContainerFolders) -> None:
    description = made(place)
    host = description["HostConfig"]
    assert isinstance(host, dict)
    assert description["User"] == "65534:65534"
    assert host["NetworkMode"] == "none"
    assert host["CapDrop"] == ["ALL"]
    assert host["ReadonlyRootfs"] is True
    assert host["Privileged"] is False
    assert host["SecurityOpt"] == ["no-new-privileges", f"seccomp={profile()}"]
    assert "/sys" in host["MaskedPaths"]


def test_a_container_has_limits(place: ContainerFolders) -> None:
    host = made(place)["HostConfig"]
    assert isinstance(host, dict)
    assert (host["Memory"], host["MemorySwap"]) == (1 << 30, 1 << 30)
    assert host["PidsLimit"] == 53
    assert host["NanoCpus"] == 1_500_000_000
    assert all(f"size={1 << 20},nr_inodes=99" in host["Tmpfs"][path] for path in ("/tmp", "/var/tmp"))
    assert all("nosuid,nodev" in options for options in host["Tmpfs"].values())
    assert host["Ulimits"] == [{"Name": "core", "Soft": 0, "Hard": 0}]


def test_a_runtime_is_asked_for_by_name(place: ContainerFolders) -> None:
    plain, other = made(place)["HostConfig"], made(place, runtime="runsc")["HostConfig"]
    assert isinstance(plain, dict)
    assert isinstance(other, dict)
    assert "Runtime" not in plain
    assert other["Runtime"] == "runsc"
    assert other["PidsLimit"] > plain["PidsLimit"], "gVisor's own threads count too"


def test_no_folder_of_the_machine_can_be_written_to(place: ContainerFolders) -> None:
    assert all(read_only for _, read_only in mounts(made(place)).values())


@pytest.mark.parametrize("runtime", ["", "runsc"])
def test_what_can_be_written_to_is_bounded(place: ContainerFolders, runtime: str) -> None:
    host = made(place, runtime=runtime, room=WorkspaceSize(5000, 7))["HostConfig"]
    assert isinstance(host, dict)
    volumes = {each["Target"]: each["VolumeOptions"] for each in host["Mounts"] if each["Type"] == "volume"}
    found = {path: each["DriverConfig"]["Options"]["o"] for path, each in volumes.items()} if runtime else host["Tmpfs"]
    assert f"size={(1 << 20) + 5000},nr_inodes={99 + 7}," in found["/srv/repo"]
    assert f"size={1 << 20},nr_inodes=99," in found["/run/redstart/out"]
    assert all("nosuid,nodev" in found[path] for path in ("/srv/repo", "/run/redstart/out"))
    assert host["Memory"] == (1 << 30) + 5000, "files of the snapshot do not count against the command"
    assert set(volumes) == ({"/srv/repo", "/run/redstart/out"} if runtime else set())


def test_the_daemon_itself_is_never_inside(place: ContainerFolders, tmp_path: Path) -> None:
    environment = {"read_only": (str(tmp_path), "/usr", "/usr/lib/python3", "/nowhere/at/all")}
    found = mounts(made(place, environment=environment))
    assert str(tmp_path) in found
    assert not [each for each in found if "docker" in each or each.startswith(("/usr", "/nowhere"))]


def test_what_lies_in_usr_local_is_of_this_machine(place: ContainerFolders) -> None:
    assert "/usr/local" in mounts(made(place, environment={"read_only": ("/usr/local",)}))


@pytest.mark.parametrize("mount", ["/", "relative", "/a/../.."])
def test_a_mount_that_cannot_be(place: ContainerFolders, mount: str) -> None:
    with pytest.raises(ConfigError):
        described(Environment(mount=mount, python="p"), SandboxLimits(), place, image="i", user=User(1, 1))


def test_paths_of_a_redstart_that_is_in_a_container(place: ContainerFolders, tmp_path: Path) -> None:
    path_map = parse_path_map((f"{tmp_path}=/var/on/the/machine", f"{tmp_path}/workspace=/elsewhere/"))
    found = mounts(made(place, path_map=path_map))
    assert found["/run/redstart/workspace"][0] == "/elsewhere"
    assert found["/run/redstart/in"][0] == "/var/on/the/machine/in"
    assert outside("/other", path_map) == "/other"
    assert outside(f"{tmp_path}-not", path_map) == f"{tmp_path}-not"


@pytest.mark.parametrize("text", ["", "/here", "here=/there", "/here=there"])
def test_a_pair_of_folders_that_is_none(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_path_map((text,))
    assert "=" in raised.value.remedy


def test_the_profile_closes_what_a_container_leaves_open() -> None:
    rules = json.loads(profile())["syscalls"]
    assert {"io_uring_setup", "bpf", "ptrace", "unshare", "keyctl"} <= set(rules[0]["names"])
    families = {rule["args"][0]["value"] for rule in rules if rule["names"] == ["socket", "socketpair"]}
    assert 40 in families
    assert not families & {1, 2, 10, 16}
    assert {rule["action"] for rule in rules} == {"SCMP_ACT_ERRNO"}


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:2375", "ssh://user@host"])
def test_an_endpoint_that_is_no_file(address: str) -> None:
    with pytest.raises(ConfigError, match="socket file"):
        socket_of(address)
    assert socket_of("unix:///run/podman.sock") == "/run/podman.sock"
    assert socket_of("") == "/var/run/docker.sock"


def test_no_daemon(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable) as raised:
        asyncio.run(DaemonApi(str(tmp_path / "none.sock")).call("GET", "/info"))
    assert "DOCKER_HOST" in raised.value.remedy


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (reply({"a": 1}), {"a": 1}),
        (b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n4\r\n: 2}\r\n0\r\n\r\n', {"a": 2}),
        (b'HTTP/1.1 200 OK\r\n\r\n{"a": 3}\n{"a": 4}\n', [{"a": 3}, {"a": 4}]),
        (b"HTTP/1.1 204 No Content\r\n\r\n", None),
    ],
)
def test_answers_of_every_form(tmp_path: Path, raw: bytes, value: object) -> None:
    async def ask() -> object:
        async with daemon(tmp_path, lambda *_: raw) as (api, _):
            return await api.call("GET", "/x")

    assert asyncio.run(ask()) == value


@pytest.mark.parametrize("raw", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"])
def test_a_daemon_that_breaks_off(tmp_path: Path, raw: bytes) -> None:
    async def ask() -> None:
        async with daemon(tmp_path, lambda *_: raw) as (api, _):
            await api.call("GET", "/x")

    with pytest.raises(SandboxUnavailable, match="broke off"):
        asyncio.run(ask())


def test_a_refusal_carries_the_daemons_words(tmp_path: Path) -> None:
    async def ask() -> None:
        async with daemon(tmp_path, lambda *_: reply({"message": "no"}, 409)) as (api, _):
            await api.call("GET", "/x")

    with pytest.raises(DaemonRefused, match="no") as raised:
        asyncio.run(ask())
    assert raised.value.status == 409


@pytest.mark.parametrize(
    ("words", "remedy"),
    [("No such image: i:1", "redstart sandbox build"), ("unknown runtime specified runsc", "sandbox.runtime")],
)
def test_a_container_that_cannot_be_started_is_removed(tmp_path: Path, words: str, remedy: str) -> None:

    async def start() -> list[str]:
        async with daemon(tmp_path, lambda *_: reply({"message": words}, 404)) as (api, asked):
            with pytest.raises(SandboxUnavailable) as raised:
                async with started(api, {}):
                    pass
            assert remedy in raised.value.remedy
            return asked

    asked = asyncio.run(start())
    assert asked[0] == "POST /containers/create"
    assert asked[-1].startswith("DELETE /containers/redstart-")


def test_a_container_that_is_still_being_made_is_waited_for(tmp_path: Path) -> None:
    async def run() -> list[str]:
        holds = asyncio.Event()
        async with daemon(tmp_path, lambda *_: reply({"Id": "1"}), holds) as (api, asked):

            async def use() -> None:
                async with started(api, {}):
                    pytest.fail("the task should have been cancelled before")

            task = asyncio.create_task(use())
            async with asyncio.timeout(10):
                while not asked:  # noqa: ASYNC110 (the awaited event happens at the other end)
                    await asyncio.sleep(0)
            task.cancel()
            asyncio.get_running_loop().call_later(0.05, holds.set)
            with pytest.raises(asyncio.CancelledError):
                await task
            return asked

    asked = asyncio.run(run())
    assert asked[:2] == ["POST /containers/create", "done"]
    assert [each.partition("redstart-")[0] for each in asked[2:]] == ["DELETE /containers/"]


def test_only_containers_of_the_dead_are_removed(tmp_path: Path) -> None:
    mine = owner_of(os.getpid())
    boot, namespace, pid, start = mine.split("/")
    owners = {
        "mine": mine,
        "other-start": f"{boot}/{namespace}/{pid}/1{start}",
        "other-boot": f"0{boot}/{namespace}/{pid}/{start}",
        "other-namespace": f"{boot}/pid:[1]/{pid}/1{start}",
        "nobody": "",
    }
    listed = [{"Id": name, "Labels": {"redstart.owner": owner}} for name, owner in owners.items()]

    async def run() -> list[str]:
        async with daemon(tmp_path, lambda method, _: reply(listed if method == "GET" else None)) as (api, asked):
            assert await reap(api) == 2
            return asked

    assert asyncio.run(run())[1:] == ["DELETE /containers/other-start", "DELETE /containers/other-boot"]
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
def test_who_was_killed_for_memory(tmp_path: Path, events: list[str], as_a_whole: bool, count: int) -> None:
    told = [
        json.dumps({"Action": action, "Actor": {"Attributes": {"exitCode": code} if code else {}}})
        for action, _, code in (event.partition(" ") for event in events)
    ]

    async def ask() -> int:
        raw = b"HTTP/1.1 200 OK\r\n\r\n" + "\n".join(told).encode()
        async with daemon(tmp_path, lambda *_: raw) as (api, _):
            return await killed_for_memory(api, "c", 0.0, as_a_whole=as_a_whole)

    assert asyncio.run(ask()) == count


def test_groups_of_another_machine_are_not_read() -> None:
    assert ContainerGroups.of("0123456789abcdef", os.getpid()) is None
    assert ContainerGroups.of("0123456789abcdef", 1 << 30) is None


def test_the_room_that_a_snapshot_takes(tmp_path: Path) -> None:
    empty = room_of(tmp_path)
    (tmp_path / "a").write_bytes(b"x" * 4097)
    (tmp_path / "b").symlink_to("/")
    assert room_of(tmp_path) == (empty.size + 3 * 4096, empty.files + 2)


def test_what_a_mount_will_cover_is_taken_away(tmp_path: Path) -> None:
    real, workspace = tmp_path / "real", tmp_path / "workspace"
    for folder in (real / ".venv/lib", real / "out/x", workspace / ".venv/lib/old", workspace / ".venv/bin"):
        folder.mkdir(parents=True)
    (workspace / "out").symlink_to(tmp_path)
    (tmp_path / "x").mkdir()
    read_only = (str(real / ".venv/lib"), str(real / "out/x"), str(real / "none"), "/elsewhere")
    furnish(Environment(mount=str(real), python="p", read_only=read_only), workspace)
    assert [path.name for path in sorted(workspace.rglob("*"))] == [".venv", "bin"]
    assert (tmp_path / "x").is_dir()


def test_moving_into_a_folder_that_was_used(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "a/b").mkdir(parents=True)
    (target / "left/deep").mkdir(parents=True)
    (target / "left").chmod(0)
    (target / "link").symlink_to(source)
    move_into(source, target)
    assert [path.name for path in target.rglob("*")] == ["a", "b"]


def test_a_recipe_names_its_image() -> None:
    one, other = ImageRecipe("bookworm"), ImageRecipe("trixie")
    assert one.name == ImageRecipe("bookworm").name
    assert len({one.name, other.name, ImageRecipe("bookworm", ("python3",)).name}) == 3
    command = one.command("mmdebstrap", Path("/x.tar"))
    assert command[-2:] == ["bookworm", "/x.tar"]
    assert any("nodejs" in each and "python3-pytest" in each for each in command)


@pytest.mark.parametrize(
    ("text", "suite"),
    [
        ("ID=debian\nVERSION_CODENAME=trixie\n", "trixie"),
        ('ID=ubuntu\nID_LIKE="debian"\nVERSION_CODENAME=noble\n', "noble"),
        ("ID=fedora\nVERSION_CODENAME=x\n", "bookworm"),
        ("", "bookworm"),
    ],
)
def test_the_release_of_the_machine(tmp_path: Path, text: str, suite: str) -> None:
    (tmp_path / "os-release").write_text(text)
    assert recipe_here(tmp_path / "os-release").suite == suite


@pytest.mark.parametrize(("status", "there"), [(200, True), (404, False)])
def test_whether_an_image_is_there(tmp_path: Path, status: int, there: bool) -> None:
    async def ask() -> bool:
        async with daemon(tmp_path, lambda *_: reply({}, status)) as (api, _):
            return await has_image(api, "i:1")

    assert asyncio.run(ask()) is there
