"""Two pools serve runs: no key may be where tests run, and no process of the repo where models are asked."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from _figures import Figure, expect_at_least, expect_equal, report_value
from drills.beside import run_in_background
from drills.ground import Ground, Worker, answer, create_tiny_repo, open_cluster
from support.server import Request

RUNS, QUICK_RUNS = 20, 3
SECONDS_A_RUN = 40.0
CHUNK = 1 << 20
OWN = frozenset({"git", "ruff"})
"""Programs that a worker starts for itself; they run no code of the repo."""
KEY = "OPENAI_API_KEY"


class Seen:
    """Watches the child processes of the workers, and looks for the key in a worker's memory, until it is stopped."""

    def __init__(self, canary: bytes, thinker: Worker, actor: Worker) -> None:
        self._canary, self._pools = canary, {"think": thinker.pid, "act": actor.pid}
        self._over = threading.Event()
        self.programs: dict[str, Counter[str]] = {"think": Counter(), "act": Counter()}
        self.looks = self.keys_found = 0

    @contextmanager
    def watch_workers(self) -> Generator[None]:
        """Watch while the context is open. Raises if the watching fails: without it there is no figure."""
        with run_in_background(self._over, self._watch, self._scan_memory):
            yield

    def _watch(self) -> None:
        # A forked process that has not executed a program yet still shows the worker's own arguments.
        worker_commands = {read(Path(f"/proc/{pid}/cmdline")) for pid in self._pools.values()}
        seen: set[tuple[int, bytes]] = set()
        while not self._over.wait(0.002):
            for pool, pid in self._pools.items():
                for child in iter_descendants(pid):
                    argv = read(Path(f"/proc/{child}/cmdline"))
                    if argv and argv not in worker_commands and (child, argv) not in seen:
                        seen.add((child, argv))
                        self.programs[pool][Path(argv.split(b"\0")[0].decode(errors="replace")).name] += 1

    def _scan_memory(self) -> None:
        while not self._over.wait(0.5):
            self.keys_found += has_in_memory(self._pools["act"], self._canary)
            self.looks += 1


def measure_privilege(*, quick: bool, say: Callable[[str], None]) -> list[Figure]:
    count = QUICK_RUNS if quick else RUNS
    canary = f"sk-canary-{secrets.token_hex(16)}"
    keys: Counter[bool] = Counter()

    def reply(request: Request) -> str:
        keys[canary in request.headers.get("authorization", "")] += 1
        return answer(request)

    with open_cluster(reply) as cluster:
        thinker = cluster.start_worker("--pool", "think", environ={**cluster.environ, KEY: canary})
        bare_environ = {
            name: value for name, value in cluster.environ.items() if not name.startswith("REDSTART_MODELS")
        }
        actor = cluster.start_worker("--pool", "act", environ=bare_environ)
        refused = cluster.start_worker("--pool", "act", environ={**bare_environ, KEY: canary})
        for worker in (thinker, actor):
            worker.wait_ready()
        observer = Seen(canary.encode(), thinker, actor)
        with observer.watch_workers():
            results = asyncio.run(_run_all(cluster, count))
            last_look = has_in_memory(actor.pid, canary.encode())
        control = has_in_memory(thinker.pid, canary.encode())
        say(
            f"children of pool think: {dict(observer.programs['think'])}; of pool act: {dict(observer.programs['act'])}"
        )
        rows = _find_columns_with(cluster, canary)
        files = [file for file in _iter_files(cluster.folder) if canary.encode() in read(file)]
        say(f"the key is in these columns: {rows}, and files: {[file.name for file in files]}")
        programs_started = sum(n for name, n in observer.programs["think"].items() if name not in OWN)
        sandboxes = sum(n for name, n in observer.programs["act"].items() if name not in OWN)
        return [
            expect_equal("privilege_green", results.count("verified"), count),
            expect_equal("privilege_keys_where_tests_run", observer.keys_found + last_look, 0),
            expect_equal("privilege_rows_and_files_with_the_key", len(rows) + len(files), 0),
            expect_equal("privilege_started_where_models_are_asked", programs_started, 0),
            expect_equal("privilege_worker_with_a_key_refused", float(refused.process.wait(60) == 2), 1),
            # These show that the watching can find something.
            expect_equal("privilege_key_found_where_it_is", float(control), 1),
            expect_equal("privilege_questions_without_the_key", keys[False], 0),
            expect_at_least("privilege_questions_with_the_key", keys[True], 2 * count),
            expect_at_least("privilege_started_where_tests_run", sandboxes, 2 * count),
            report_value("privilege_looks_into_memory", observer.looks),
        ]


async def _run_all(ground: Ground, count: int) -> list[str]:
    runs = await ground.store_runs(create_tiny_repo(ground.folder / "calc"), count)
    await ground.submit(runs)
    return await asyncio.wait_for(ground.finish(runs), 60 + SECONDS_A_RUN * count)


def _find_columns_with(ground: Ground, canary: str) -> list[str]:
    """List the tables and columns that hold the text anywhere, whoever wrote it."""
    columns = ground.query_rows(
        "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'"
    )
    matches: list[str] = []
    for table, column, kind in columns:
        text = f"encode({column}, 'escape')" if kind == "bytea" else f"{column}::text"
        if ground.query_rows(f"SELECT count(*) FROM {table} WHERE position('{canary}' in {text}) > 0")[0][0]:
            matches.append(f"{table}.{column}")
    return matches


def _iter_files(folder: Path) -> Iterator[Path]:
    """Yield the files of the workers' logs and homes, and of the server's log and history."""
    for file in folder.rglob("*"):
        if file.is_file() and "postgres" not in file.relative_to(folder).parts:
            yield file


def read(file: Path) -> bytes:
    """Read the file; empty if it is gone."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def iter_descendants(pid: int) -> Iterator[int]:
    """Yield every descendant of the process; nothing if it has ended."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").glob("*/children"))
    except OSError:
        return
    for task in tasks:
        for child in read(task).split():
            yield int(child)
            yield from iter_descendants(int(child))


def has_in_memory(pid: int, text: bytes) -> bool:
    """Return whether the text is in the process's environment, or anywhere in its readable memory."""
    if text in read(Path(f"/proc/{pid}/environ")):
        return True
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in maps:
            address_range, rights = line.split()[:2]
            if not rights.startswith("r") or line.rstrip().endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                continue
            start, end = (int(item, 16) for item in address_range.split("-"))
            overlap = b""
            for address in range(start, end, CHUNK):
                try:
                    memory.seek(address)
                    part = memory.read(min(CHUNK, end - address))
                except OSError:
                    break
                if text in overlap + part:
                    return True
                overlap = part[-len(text) :]
    return False
