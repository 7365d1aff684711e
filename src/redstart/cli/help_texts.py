"""The tables behind `--help`: option groups, one-line summaries, examples, and words that people type from habit."""

from __future__ import annotations

from typing import NamedTuple

TAGLINE = "Redstart fixes failing tests and proves the fix, or says why it could not."
DOCS = "Documentation: docs/tutorial.md and docs/reference/cli.md in the Redstart repository."

COMMON, LIMITS, MODEL, SANDBOX, ADVANCED = "Common options", "Limits", "Model", "Sandbox", "Advanced"
GROUPS = (COMMON, LIMITS, MODEL, SANDBOX, ADVANCED)

_FLAGS_BY_GROUP = {
    COMMON: (
        "--issue -k --test-cmd --scope --hint --apply --dry-run --patch --no-input --json --verbose --help --out "
        "--goal-file --lang --kind --spec-tests --approve --goal --metric --better --since --fail-on --format "
        "--baseline --no-baseline --write-baseline --show --say --accept --reject --force --attempt --proof "
        "--branch --cheat --online --yes --here --all --cassette --after --path --anew --workers --folder --pool "
        "--name --runs --memory --repo --by --skill --files --signature --types --export --database --html "
        "--count --most --hide-tests --demo --mode --version --install-completion --show-completion --older-than "
        "--keep"
    ),
    LIMITS: (
        "--max-attempts --max-cycles --max-usd --max-minutes --until-green --no-limit "
        "--max-tool-calls --pause --limit --first --parallel --at-once --scan --repeats"
    ),
    MODEL: "--model --reflect --env-file --no-llm --change-model",
    SANDBOX: "--sandbox --sandbox-image --sandbox-cpus --sandbox-memory --unsafe-no-sandbox --python",
    ADVANCED: "--verify --junit --tests --stop-after --detach --engine --seeds --seed --repos --candidates --project",
}
GROUP_BY_FLAG = {flag: group for group, flags in _FLAGS_BY_GROUP.items() for flag in flags.split()}
"""In which group of the help an option stands, by its longest name. A test fails for an option that is missing here."""


class CommandSection(NamedTuple):
    """A titled part of the first screen."""

    title: str
    names: tuple[str, ...]


EVERYDAY = CommandSection(
    "Everyday commands", ("fix", "create", "improve", "audit", "apply", "undo", "show", "resume", "runs", "doctor")
)
MORE = CommandSection("More commands", ("demo", "init", "config", "models", "memory", "stats", "eval", "graph"))
OPERATORS = CommandSection("Commands for operators", ("worker", "fleet", "sandbox"))
SECTIONS = (EVERYDAY, MORE, OPERATORS)

SUMMARIES = {
    "fix": "Fix failing tests and save the fix as a patch.",
    "create": "Create a tested program from a goal.",
    "improve": "Improve a program in cycles; each change must pass the tests.",
    "audit": "Report security problems and bugs; change nothing.",
    "apply": "Apply a run's patch to your working tree.",
    "undo": "Undo an earlier `redstart apply`.",
    "show": "Show what a run did: its attempts, diff and proof.",
    "resume": "Resume a run where it stopped, or answer its question.",
    "runs": "List, watch, pause, cancel, replay and export runs.",
    "doctor": "Check that this machine has what Redstart needs.",
    "demo": "Watch Redstart fix a bug; needs no key and no network.",
    "init": "Propose a redstart.toml for a project.",
    "config": "Show and change settings; see where each value comes from.",
    "models": "List the models that can be reached, with price and window.",
    "memory": "Search, approve or delete what earlier runs learned.",
    "stats": "Summarize past runs: outcomes, attempts, time and cost.",
    "eval": "Measure Redstart on tasks whose answers are known.",
    "graph": "Draw the steps of a run and where each can lead.",
    "worker": "Drive the runs of a fleet until stopped.",
    "fleet": "Start and inspect a fleet of workers.",
    "sandbox": "Run a command or a shell in the sandbox; build its image.",
}
"""One line each on the first screen."""

FIRST_EXAMPLES = ("redstart demo", "redstart fix -m openai:gpt-6.1-sol")
EXAMPLES: dict[str, tuple[str, ...]] = {
    "fix": (
        "redstart fix -m anthropic:claude-sonnet-5",
        "redstart fix . tests/test_cart.py --max-usd 1",
        'redstart fix --issue "Totals are rounded down" --dry-run',
    ),
    "create": (
        'redstart create "A command that counts words in a file" -o wordcount',
        "redstart create --goal-file goal.md -o app --max-usd 5",
    ),
    "improve": (
        'redstart improve --goal "Make parsing faster" --max-minutes 20',
        'redstart improve . --metric "python bench.py" --better smaller --max-usd 3',
    ),
    "audit": ("redstart audit src --fail-on high", "redstart audit --since main --format sarif"),
    "resume": ("redstart resume", 'redstart resume 3f2a --say "The bug is in the parser"'),
    "show": ("redstart show", "redstart show 3f2a --proof"),
    "apply": ("redstart apply", "redstart apply 3f2a --branch fix-totals"),
    "undo": ("redstart undo",),
    "demo": ("redstart demo", "redstart demo --cheat"),
    "doctor": ("redstart doctor", "redstart doctor --online"),
    "init": ("redstart init", "redstart init services/api --yes"),
    "graph": ("redstart graph",),
    "worker": ("redstart worker --pool both",),
    "stats": ("redstart stats --since 7d",),
    "runs list": ("redstart runs list --here",),
    "runs replay": ("redstart runs replay 3f2a",),
    "runs export": ("redstart runs export 3f2a --cassette calls.json",),
    "runs fork": ("redstart runs fork 3f2a --after plan",),
    "runs watch": ("redstart runs watch 3f2a",),
    "runs pause": ("redstart runs pause 3f2a",),
    "runs cancel": ("redstart runs cancel 3f2a",),
    "runs prune": ("redstart runs prune --older-than 30 --dry-run",),
    "config show": ("redstart config show",),
    "config schema": ("redstart config schema",),
    "config get": ("redstart config get models.strong",),
    "config set": ("redstart config set limits.usd 5",),
    "config path": ("redstart config path",),
    "config edit": ("redstart config edit",),
    "models": ("redstart models", "redstart models --all"),
    "sandbox run": ("redstart sandbox run -- python -m pytest -q",),
    "sandbox shell": ("redstart sandbox shell",),
    "sandbox build": ("redstart sandbox build",),
    "fleet up": ("redstart fleet up --workers 2",),
    "fleet status": ("redstart fleet status",),
    "fleet register": ("redstart fleet register",),
    "fleet promote": ("redstart fleet promote",),
    "eval run": ("redstart eval run quixbugs --first 5",),
    "eval report": ("redstart eval report quixbugs",),
    "eval compare": ("redstart eval compare before after",),
    "eval export-predictions": ("redstart eval export-predictions quixbugs",),
    "eval check-tasks": ("redstart eval check-tasks quixbugs",),
    "eval verify": ("redstart eval verify quixbugs",),
    "eval mutate": ("redstart eval mutate . --out tasks.jsonl",),
    "eval mine": ("redstart eval mine . --out tasks.jsonl --most 20",),
    "memory list": ("redstart memory list",),
    "memory search": ('redstart memory search "unsupported operand"',),
    "memory show": ("redstart memory show 7c1d",),
    "memory approve": ("redstart memory approve 7c1d",),
    "memory forget": ("redstart memory forget 7c1d",),
    "memory stats": ("redstart memory stats",),
    "memory export": ("redstart memory export --skill skills",),
    "memory graph": ("redstart memory graph --files",),
    "memory mirror": ("redstart memory mirror bolt://localhost:7687",),
}
"""By command. A test parses each of them, and fails for a command without one."""

HABITS = {
    "": {
        "run": "redstart fix",
        "test": "redstart fix --dry-run runs the tests and changes nothing",
        "tests": "redstart fix --dry-run runs the tests and changes nothing",
        "repair": "redstart fix",
        "solve": "redstart fix",
        "new": "redstart create",
        "build": "redstart create",
        "generate": "redstart create",
        "history": "redstart runs list",
        "status": "redstart runs list",
        "list": "redstart runs list",
        "ls": "redstart runs list",
        "ps": "redstart runs list",
        "log": "redstart show",
        "logs": "redstart show",
        "diff": "redstart show",
        "proof": "redstart show --proof",
        "continue": "redstart resume",
        "retry": "redstart resume",
        "revert": "redstart undo",
        "rollback": "redstart undo",
        "merge": "redstart apply",
        "commit": "redstart apply --branch NAME",
        "watch": "redstart runs watch",
        "pause": "redstart runs pause ID",
        "cancel": "redstart runs cancel ID",
        "stop": "redstart runs cancel ID",
        "kill": "redstart runs cancel ID",
        "replay": "redstart runs replay",
        "prune": "redstart runs prune",
        "clean": "redstart runs prune",
        "help": "redstart --help",
        "version": "redstart --version",
        "login": "set your provider's key, for example OPENAI_API_KEY, then run redstart doctor",
        "auth": "set your provider's key, for example OPENAI_API_KEY, then run redstart doctor",
        "init-config": "redstart init",
        "setup": "redstart init",
        "settings": "redstart config show",
        "check": "redstart doctor",
        "scan": "redstart audit",
        "review": "redstart audit",
        "lint": "redstart audit",
        "lessons": "redstart memory list",
        "bench": "redstart eval run",
    },
    "config": {"get": "redstart config show", "list": "redstart config show", "ls": "redstart config show"},
    "runs": {
        "ls": "redstart runs list",
        "show": "redstart show ID",
        "log": "redstart show ID",
        "resume": "redstart resume ID",
        "stop": "redstart runs cancel ID",
        "rm": "redstart runs prune",
        "delete": "redstart runs prune",
        "clean": "redstart runs prune",
    },
    "memory": {"ls": "redstart memory list", "rm": "redstart memory forget ID", "delete": "redstart memory forget ID"},
}
"""What to type instead, by group of commands (the first is `redstart` itself) and the word that was typed."""
