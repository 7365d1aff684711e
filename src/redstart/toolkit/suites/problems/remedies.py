"""Remedies for what tests lack, in any language."""

from __future__ import annotations

LEAVE_OUT = "leave out the tests that print this much with --test-cmd"

BROKEN_TEST = "broken_test"
"""The kind of a problem that is a mistake in the test file."""
REMEDIES = {
    "dns": "the sandbox has no network: use a local server for these tests, or leave them out with --test-cmd",
    "network_unreachable": (
        "the sandbox has no network: use a local server for these tests, or leave them out with --test-cmd"
    ),
    "denied_path": "make the path configurable, so that the tests can use a temporary directory",
    "permission": "the sandbox grants no privileges: leave these tests out with --test-cmd",
    "full_disk": "free disk space for temporary files and Redstart's data, then run it again",
    "timeout_of_sandbox": "leave out the slow tests with --test-cmd, or raise the limit with REDSTART_SANDBOX__WALL",
    "memory": "leave out the large tests with --test-cmd, or raise the limit with REDSTART_SANDBOX__MEMORY",
    "missing_display": "run the tests under a virtual display: --test-cmd 'xvfb-run pytest' (package Xvfb)",
    "locale": "generate this locale on the machine (Debian: locale-gen), or choose C.UTF-8 in the tests",
    BROKEN_TEST: "correct the test file: Redstart changes the code, never its tests",
    "no_tests": (
        'describe the problem and Redstart writes the test: redstart fix --issue "...", '
        "or name the command that runs your tests with --test-cmd"
    ),
}

SERVICES = {
    "3306": ("MySQL", "-e MYSQL_ROOT_PASSWORD=root mysql"),
    "5432": ("PostgreSQL", "-e POSTGRES_PASSWORD=postgres postgres"),
    "5672": ("RabbitMQ", "rabbitmq"),
    "6379": ("Redis", "redis"),
    "9092": ("Kafka", "apache/kafka"),
    "9200": ("Elasticsearch", "-e discovery.type=single-node elasticsearch:8.15.0"),
    "11211": ("memcached", "memcached"),
    "27017": ("MongoDB", "mongo"),
}
"""The server that usually listens on a port, and the arguments of `docker run` that start one."""


def allow(limit: str) -> str:
    """Suggest a remedy for a sandbox limit, which is named by the end of its variable."""
    return f"leave out the tests that need this much with --test-cmd, or raise the limit with REDSTART_SANDBOX__{limit}"


def start_service(place: str) -> str:
    """Suggest what to start if nothing answers at `host:port`, and how the tests reach it. `place` may be empty."""
    port = place.rpartition(":")[2]
    name, image = SERVICES.get(port, ("", ""))
    if name:
        start = f"start {name}, for example: docker run -d -p 127.0.0.1:{port}:{port} {image}"
    else:
        start = f"start the server that the tests expect at {place}" if port else "start the server that the tests need"
    command = f"REDSTART_SANDBOX__SERVICES='[\"127.0.0.1:{port or 'PORT'}\"]' redstart fix"
    return f"{start}; then let the tests reach it (setting sandbox.services): {command}"
