# The one door: every task of the project is here, and `just` alone lists them. No environment needs to be activated.
#
# Variables that are read:
#   REDSTART_PYTHON   the interpreter that `setup` builds .venv with (default: python3; 3.11 or newer)
#   REDSTART_WORKERS  how many test processes `test` and `soak` start (default: 2)
#   REDSTART_DATA     folder of the evaluation data (docs/benchmarks.md); a bench that needs it fails without it
#   REDSTART_HOME     where runs are kept (default: the platform's user data folder); tests use a temporary one
#   REDSTART_LIVE_URL    the endpoint of `live`, without a path; also REDSTART_LIVE_MODEL (default: local) and _KEY

set shell := ["bash", "-euo", "pipefail", "-c"]

bin := justfile_directory() / ".venv/bin"
python := env("REDSTART_PYTHON", "python3")
workers := env("REDSTART_WORKERS", "2")
compile := "env -u UV_FIND_LINKS -u PIP_FIND_LINKS uv pip compile --quiet --no-config --generate-hashes --universal" + \
    " --python-version 3.11 --no-annotate --no-emit-index-url --custom-compile-command 'just lock'"

_list:
    @{{ just_executable() }} --justfile {{ quote(justfile()) }} --list --unsorted

# Make .venv from the lock, hashes checked, and install the package editable
setup:
    [ -x {{ bin }}/python ] || uv venv --quiet --python {{ python }} .venv
    uv pip sync --quiet --compile-bytecode --python {{ bin }}/python --require-hashes requirements/dev.txt
    uv pip install --quiet --python {{ bin }}/python --no-deps --no-build-isolation --editable .

# Lint, format, types, import contracts, and that no file names a machine or a registry
check:
    {{ bin }}/ruff check .
    {{ bin }}/ruff format --check .
    {{ bin }}/pyright
    {{ bin }}/lint-imports --no-logo
    {{ bin }}/pytest -q -p no:cacheprovider tests/test_architecture.py -k machine_path

# Run the quick tests, in less than a minute; arguments go to pytest
quick *args:
    {{ bin }}/pytest --quick -n {{ workers }} tests/unit {{ args }}

# Run the tests; arguments go to pytest
test *args:
    {{ bin }}/pytest -n {{ workers }} --dist worksteal {{ args }}

# Run each script of bench/ briefly and print its last line, which is JSON; fails at the end where one failed
bench *args="--quick":
    @failed=0; for script in $(grep -l -- '"--quick"' bench/*.py); do printf '%s ' "$script"; \
        {{ bin }}/python "$script" {{ args }} | tail -n 1 || failed=1; done; exit $failed

# Break a fleet in many ways and see that nothing is lost (minutes with --quick, about an hour without)
chaos *args:
    {{ bin }}/python bench/chaos.py {{ args }}

# Check the docs: their commands run, their links resolve
docs:
    {{ bin }}/pytest -q tests/test_docs.py

# Run everything, the slow suites too
soak *args:
    {{ bin }}/pytest -n {{ workers }} --dist worksteal --soak {{ args }}

# Run the tests that ask a real model (REDSTART_LIVE_URL); they may cost money
live *args:
    {{ bin }}/pytest --live -m live {{ args }}

# Resolve the dependencies anew into requirements/; `just lock --upgrade` takes newer versions
lock *args:
    {{ compile }} {{ args }} pyproject.toml -o requirements/base.txt
    {{ compile }} {{ args }} -c requirements/base.txt --extra fleet pyproject.toml -o requirements/fleet.txt
    {{ compile }} {{ args }} -c requirements/base.txt --extra neo4j pyproject.toml -o requirements/neo4j.txt
    {{ compile }} {{ args }} -c requirements/base.txt --extra fleet --extra neo4j --group dev pyproject.toml -o requirements/dev.txt
    {{ compile }} {{ args }} requirements/tools.in -o requirements/tools.txt

# Build the wheel into dist/
wheel:
    {{ bin }}/hatchling build -t wheel -d dist
