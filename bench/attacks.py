"""Hostile programs on each sandbox, judged by what the host sees, and how much they slow their neighbors.

Each attack first runs without a sandbox, as an ordinary user and limited by a control group, to show which attacks work
at all; then it runs on every backend of this machine. A neighbor, which is an unrelated process, repeats the same piece
of work all the time. `neighbours` is how much longer that work takes beside a greedy attack in bubblewrap than while
the attack is frozen. The two phases alternate ten times a second. The figures are the median of the attacks and the
worst attack. Attacks in containers cannot be frozen from here: instead, the pace is compared, in turns, with the pace
beside a program that rests in the same sandbox and beside one that honestly computes there.

`--write` puts the table into docs/sandbox-attacks.md.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import NamedTuple

from _figures import Figure, expect_at_least, expect_at_most, expect_equal, print_figures, report_value

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests" / "attacks"))

from backends import BACKENDS, BARE, OWN_KERNEL, why_not  # noqa: E402
from catalogue import BARE as BARE_WORDS  # noqa: E402
from catalogue import EVIDENCE, Attack, attacks, read  # noqa: E402
from harness import LIMITS, Outcome, play  # noqa: E402
from neighbours import GREEDY, Neighbour  # noqa: E402
from neighbours import felt as felt_beside_frozen  # noqa: E402
from yard import Yard, may_bound, yard  # noqa: E402

HARMLESS = ROOT / "tests" / "attacks" / "harmless"
PAGE = ROOT / "docs" / "sandbox-attacks.md"
MOST_SLOWDOWN = 0.05
PAIRS = 40


class Felt(NamedTuple):
    """The fraction by which the neighbor is slower than beside a program that rests in the same sandbox."""

    slowdown: float
    """While an attack runs."""
    honest: float
    """While a program of one process computes there."""
    noise: float
    """The difference between two rests: a slowdown below it is meaningless."""


def measure_pace(neighbour: Neighbour, action: Callable[[], object]) -> float:
    """Return the pieces of work a second that the neighbor does while `action` runs."""
    before, began = neighbour.done(), time.monotonic()
    action()
    return (neighbour.done() - before) / (time.monotonic() - began)


def measure_bubblewrap_neighbors(pairs: int) -> list[Figure]:
    """Measure the neighbors of each greedy attack. Return nothing if freezing is not allowed, as without root."""
    try:
        ratios = {attack: felt_beside_frozen(attack, pairs).wall for attack in GREEDY}
    except OSError as error:
        print(f"neighbours: {error}")
        return []
    value, worst = statistics.median(ratios.values()), max(ratios, key=lambda attack: ratios[attack])
    print(f"neighbours: the worst is {worst}; the machine's load is {os.getloadavg()[0]:.1f}")
    return [expect_at_most("neighbours", value, 1 + MOST_SLOWDOWN), report_value("neighbours_worst", ratios[worst])]


def measure_slowdown(backend: str, ground: Yard, rounds: int) -> Felt:
    """Return the medians over the greediest attacks and all rounds, each measured between two rests."""
    greedy = [attack for attack in attacks() if attack.name.partition("/")[2] in GREEDY]
    rests, works = (read(HARMLESS / name) for name in ("rests.py", "works.py"))
    neighbour = Neighbour(ground.folder)
    samples: list[Felt] = []
    try:
        for attack in greedy * rounds:
            first_rest, attacked, honest, second_rest = (
                measure_pace(neighbour, lambda program=program: play(program, backend, ground))
                for program in (rests, attack, works, rests)
            )
            rest_pace = (first_rest + second_rest) / 2
            samples.append(Felt(1 - attacked / rest_pace, 1 - honest / rest_pace, abs(1 - second_rest / first_rest)))
        assert neighbour.alive, "the neighbour died"
    finally:
        neighbour.close()
    return Felt(*(statistics.median(values) for values in zip(*samples, strict=True)))


@contextlib.contextmanager
def open_yard() -> Generator[Yard]:
    with tempfile.TemporaryDirectory(prefix="ra-") as folder:
        Path(folder).chmod(0o755)
        with yard(Path(folder)) as new_yard:
            yield new_yard


def choose_attacks(quick: bool) -> list[Attack]:
    """Return all attacks; if quick, the first of each group and kind of evidence, without those that only take time."""
    all_attacks = attacks()
    if not quick:
        return all_attacks
    first_by_kind = {
        (attack.group, attack.evidence): attack for attack in reversed(all_attacks) if attack.evidence != "time"
    }
    return sorted(first_by_kind.values())


def play_attack(attack: Attack, backend: str, ground: Yard) -> Outcome | None:
    """Play the attack on the backend; None if it must not run there."""
    if backend == BARE and (attack.bare == "untried" or not may_bound()):
        return None
    return play(attack, backend, ground)


def format_cell(outcome: Outcome | None, attack: Attack) -> str:
    """Return one word for the table."""
    if outcome is None:
        return "not run"
    if outcome.backend == BARE:
        return "works" if attack.evidence in outcome.kinds else "fails"
    if outcome.in_vain:
        return f"in vain: {outcome.in_vain}"
    return f"ESCAPED: {'; '.join(outcome.evidence)}" if outcome.escaped else "held"


def format_table(rows: list[tuple[Attack, list[str]]], backends: list[str]) -> str:
    head = ["attack", "what it does", "evidence", *backends]
    lines = [head, ["---"] * len(head)]
    lines += [[f"`{attack.name}`", attack.words, attack.evidence, *cells] for attack, cells in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def format_page(rows: list[tuple[Attack, list[str]]], backends: list[str], missing: dict[str, str]) -> str:
    bare_cells = [cells[0] for _, cells in rows]
    limits = ", ".join(f"{name} {value}" for name, value in LIMITS.model_dump().items())
    parts = [
        "# Attacks on the sandbox",
        "This page shows what hostile programs can do in each sandbox. `python bench/attacks.py --write` writes it.\n"
        "The programs are in `tests/attacks/programs`. The host, not the program, decides whether an attack\n"
        "succeeded, and looks for every kind of evidence in every attack.",
        f"There are {len(rows)} hostile programs. Without a sandbox, {bare_cells.count('works')} of them succeed, and "
        f"{bare_cells.count('fails')} fail because an ordinary\n"
        f"user is refused. The other {bare_cells.count('not run')} are not run without a sandbox, because they could "
        f"affect things that are not ours.",
        f"Limits: {limits}.",
        *(["Not available on the machine that wrote this page: " + ", ".join(missing) + "."] if missing else []),
        format_table(rows, backends),
        "## Evidence",
        "\n".join(f"- {name}: {description}" for name, description in EVIDENCE.items()),
        f"On {', '.join(sorted(OWN_KERNEL))}, a program's own report does not count, because its kernel belongs to the "
        f"sandbox.",
        "## Without a sandbox",
        "\n".join(f"- {name}: {description}" for name, description in BARE_WORDS.items()),
    ]
    return "\n\n".join(parts) + "\n"


def build_figures(outcomes: list[Outcome], count: int, slowdowns: dict[str, Felt], quick: bool) -> list[Figure]:
    sandboxed = [outcome for outcome in outcomes if outcome.backend != BARE]
    minimum = 30 if quick else 80
    counts = {
        "escapes": sum(outcome.escaped for outcome in sandboxed),
        "survivors": sum(outcome.survivors for outcome in sandboxed),
        "in_vain": sum(bool(outcome.in_vain) for outcome in sandboxed),
    }
    figures = [
        expect_at_least("attacks", count, minimum),
        *(expect_equal(name, value, 0) for name, value in counts.items()),
    ]
    working_count = sum(outcome.backend == BARE and outcome.attack.evidence in outcome.kinds for outcome in outcomes)
    figures.append(report_value("shown_to_work_bare", working_count))
    for backend, (slowdown, honest, noise) in slowdowns.items():
        suffix = f"_{backend.partition('+')[2]}"
        figures.append(expect_at_most(f"neighbour_slowdown{suffix}", slowdown, MOST_SLOWDOWN))
        figures.append(report_value(f"neighbour_slowdown_by_honest_work{suffix}", honest))
        figures.append(report_value(f"neighbour_noise{suffix}", noise))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the first of each group and kind of evidence")
    parser.add_argument("--write", action="store_true", help="write the table into docs/sandbox-attacks.md")
    args = parser.parse_args()
    missing = {name: reason for name in BACKENDS if (reason := why_not(name))}
    backends = [BARE, *(name for name in BACKENDS if name not in missing)]
    rows: list[tuple[Attack, list[str]]] = []
    outcomes: list[Outcome] = []
    with open_yard() as workspace:
        for attack in choose_attacks(args.quick):
            results = [play_attack(attack, backend, workspace) for backend in backends]
            cells = [format_cell(outcome, attack) for outcome in results]
            print(f"  {attack.name:<34} {'  '.join(cells)}", flush=True)
            rows.append((attack, cells))
            outcomes += [outcome for outcome in results if outcome]
        containers = [name for name in backends if name not in (BARE, "bwrap")]
        slowdowns = {name: measure_slowdown(name, workspace, 1 if args.quick else 3) for name in containers}
    for name, reason in missing.items():
        print(f"not available: {name}: {reason}")
    if args.write:
        PAGE.write_text(format_page(rows, backends, missing), encoding="utf-8")
    figures = build_figures(outcomes, len(rows), slowdowns, args.quick)
    if "bwrap" in backends:
        figures += measure_bubblewrap_neighbors(PAIRS // 4 if args.quick else PAIRS)
    print_figures("attacks", figures)


if __name__ == "__main__":
    main()
