"""Two pools serve runs: no key may be where tests run, and no process of the repo where models are asked."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from _figures import Figure, at_least, exactly, told
from drills.beside import beside
from drills.ground import Ground, Worker, answer, new_ground, tiny_repo
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
    def looking(self) -> Generator[None]:
        """Watch while the context is open. Raises if the watching fails: without it there is no figure."""
        with beside(self._over, self._watch, self._look):
            yield

    def _watch(self) -> None:
        # A forked process that has not executed a program yet still shows the worker's own arguments.
        known = {read(Path(f"/proc/{pid}/cmdline")) for pid in self._pools.values()}
        seen: set[tuple[int, bytes]] = set()
        while not self._over.wait(0.002):
            for pool, pid in self._pools.items():
                for below in descendants(pid):
                    argv = read(Path(f"/proc/{below}/cmdline"))
                    if argv and argv not in known and (below, argv) not in seen:
                        seen.add((below, argv))
                        self.programs[pool][Path(argv.split(b"\0")[0].decode(errors="replace")).name] += 1

    def _look(self) -> None:
        while not self._over.wait(0.5):
            self.keys_found += holds(self._pools["act"], self._canary)
            self.looks += 1


def privilege(*, quick: bool, say: Callable[[str], None]) -> list[Figure]:
    count = QUICK_RUNS if quick else RUNS
    canary = f"sk-canary-{secrets.token_hex(16)}"
    keys: Counter[bool] = Counter()

    def reply(request: Request) -> str:
        keys[canary in request.headers.get("authorization", "")] += 1
        return answer(request)

    with new_ground(reply) as ground:
        thinker = ground.worker("--pool", "think", environ={**ground.environ, KEY: canary})
        unnamed = {name: value for name, value in ground.environ.items() if not name.startswith("REDSTART_MODELS")}
        actor = ground.worker("--pool", "act", environ=unnamed)
        refused = ground.worker("--pool", "act", environ={**unnamed, KEY: canary})
        for worker in (thinker, actor):
            worker.wait_ready()
        seen = Seen(canary.encode(), thinker, actor)
        with seen.looking():
            results = asyncio.run(_driven(ground, count))
            last_look = holds(actor.pid, canary.encode())
        control = holds(thinker.pid, canary.encode())
        say(f"children of pool think: {dict(seen.programs['think'])}; of pool act: {dict(seen.programs['act'])}")
        rows = _rows_with(ground, canary)
        files = [file for file in _files(ground.folder) if canary.encode() in read(file)]
        say(f"the key is in these columns: {rows}, and files: {[file.name for file in files]}")
        started = sum(n for name, n in seen.programs["think"].items() if name not in OWN)
        sandboxes = sum(n for name, n in seen.programs["act"].items() if name not in OWN)
        return [
            exactly("privilege_green", results.count("verified"), count),
            exactly("privilege_keys_where_tests_run", seen.keys_found + last_look, 0),
            exactly("privilege_rows_and_files_with_the_key", len(rows) + len(files), 0),
            exactly("privilege_started_where_models_are_asked", started, 0),
            exactly("privilege_worker_with_a_key_refused", float(refused.process.wait(60) == 2), 1),
            # These show that the watching can find something.
            exactly("privilege_key_found_where_it_is", float(control), 1),
            exactly("privilege_questions_without_the_key", keys[False], 0),
            at_least("privilege_questions_with_the_key", keys[True], 2 * count),
            at_least("privilege_started_where_tests_run", sandboxes, 2 * count),
            told("privilege_looks_into_memory", seen.looks),
        ]


async def _driven(ground: Ground, count: int) -> list[str]:
    runs = await ground.begin(tiny_repo(ground.folder / "calc"), count)
    await ground.submit(runs)
    return await asyncio.wait_for(ground.finish(runs), 60 + SECONDS_A_RUN * count)


def _rows_with(ground: Ground, canary: str) -> list[str]:
    """List the tables and columns that hold the text anywhere, whoever wrote it."""
    columns = ground.rows(
        "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'"
    )
    found: list[str] = []
    for table, column, kind in columns:
        text = f"encode({column}, 'escape')" if kind == "bytea" else f"{column}::text"
        if ground.rows(f"SELECT count(*) FROM {table} WHERE position('{canary}' in {text}) > 0")[0][0]:
            found.append(f"{table}.{column}")
    return found


def _files(folder: Path) -> Iterator[Path]:
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


def descendants(pid: int) -> Iterator[int]:
    """Yield every descendant of the process; nothing if it has ended."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").glob("*/children"))
    except OSError:
        return
    for task in tasks:
        for child in read(task).split():
            yield int(child)
            yield from descendants(int(child))


def holds(pid: int, what: bytes) -> bool:
    """Return whether the text is in the process's environment, or anywhere in its readable memory."""
    if what in read(Path(f"/proc/{pid}/environ")):
        return True
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in maps:
            where, rights = line.split()[:2]
            if not rights.startswith("r") or line.rstrip().endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                continue
            begin, end = (int(item, 16) for item in where.split("-"))
            kept = b""
            for at in range(begin, end, CHUNK):
                try:
                    memory.seek(at)
                    part = memory.read(min(CHUNK, end - at))
                except OSError:
                    break
                if what in kept + part:
                    return True
                kept = part[-len(what) :]
    return False
