"""A Flask REST API from a goal: its plan asks for Flask, a person approves it, and the project runs elsewhere.

It fetches Flask from the index that pip uses, so it runs only with `--soak`. `malicious/test_planned_packages.py`
does the same in every test run, with a local package.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.scenarios import Recorded, parse_question
from support.server import Request, ScriptedServer, Wire

GOAL = "Create a Flask REST API for todos with SQLite"
FOLDER = "flask-rest-api-for-todos-with-sqlite"
PACKAGE = FOLDER.replace("-", "_")
CRITERIA = (
    f"{PACKAGE}.create_app(database) gives a Flask application that keeps todos in the SQLite file database",
    "POST /todos with JSON {title} answers 201 with id, title and done, which is false",
    "GET /todos lists every todo by id, in a new application on the same file too",
    "PATCH /todos/ID with {done} changes it; DELETE /todos/ID answers 204; an unknown id answers 404",
    "a title that is missing, empty or no text answers 400 and keeps nothing",
)
PLAN = {
    "summary": "A REST API for todos with Flask, kept in SQLite.",
    "packages": [{"name": "Flask>=3", "reason": "the goal asks for a Flask API"}],
    "subtasks": [{"title": "REST API for todos", "criteria": list(CRITERIA)}],
}
TESTS = f"""tests/test_todos.py
<<<<<<< SEARCH
=======
import pytest
from flask import Flask

from {PACKAGE} import create_app


@pytest.fixture
def database(tmp_path):
    return str(tmp_path / "todos.db")


@pytest.fixture
def client(database):
    app = create_app(database)
    assert isinstance(app, Flask)
    return app.test_client()


def test_a_todo_is_created(client):
    made = client.post("/todos", json={{"title": "buy milk"}})
    assert made.status_code == 201
    assert made.get_json() == {{"id": 1, "title": "buy milk", "done": False}}


def test_todos_are_listed_in_order_and_kept(client, database):
    assert client.get("/todos").get_json() == []
    for title in ("a", "b", "c"):
        client.post("/todos", json={{"title": title}})
    again = create_app(database).test_client().get("/todos").get_json()
    assert [(todo["id"], todo["title"]) for todo in again] == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize("body", [{{}}, {{"title": ""}}, {{"title": "  "}}, {{"title": 3}}, {{"title": None}}])
def test_a_bad_title_is_refused(client, body):
    refused = client.post("/todos", json=body)
    assert refused.status_code == 400
    assert "title" in refused.get_json()["error"]
    assert client.get("/todos").get_json() == []


def test_a_todo_is_done_and_undone(client):
    client.post("/todos", json={{"title": "x"}})
    assert client.patch("/todos/1", json={{"done": True}}).get_json()["done"] is True
    assert client.get("/todos").get_json()[0]["done"] is True
    assert client.patch("/todos/1", json={{"done": False}}).get_json()["done"] is False


def test_a_todo_is_deleted(client):
    client.post("/todos", json={{"title": "x"}})
    client.post("/todos", json={{"title": "y"}})
    assert client.delete("/todos/1").status_code == 204
    assert [todo["title"] for todo in client.get("/todos").get_json()] == ["y"]


def test_what_is_not_there_is_404(client):
    assert client.patch("/todos/7", json={{"done": True}}).status_code == 404
    assert client.delete("/todos/7").status_code == 404
>>>>>>> REPLACE
"""
CODE = f"""WHY: it is new

{PACKAGE}/__init__.py
<<<<<<< SEARCH
=======
\"\"\"A REST API for todos with Flask, kept in SQLite.\"\"\"

from {PACKAGE}.app import create_app

__all__ = ["create_app"]
>>>>>>> REPLACE

{PACKAGE}/app.py
<<<<<<< SEARCH
=======
\"\"\"The application.\"\"\"

import sqlite3
from contextlib import closing

from flask import Flask, jsonify, request

TABLE = "CREATE TABLE IF NOT EXISTS todos (id INTEGER PRIMARY KEY, title TEXT NOT NULL, done INTEGER NOT NULL)"


def create_app(database):
    \"\"\"A Flask application that keeps its todos in the SQLite file `database`.\"\"\"
    app = Flask(__name__)

    def run(statement, *values):
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.row_factory = sqlite3.Row
            cursor = connection.execute(statement, values)
            return cursor, [as_todo(row) for row in cursor.fetchall()]

    run(TABLE)

    @app.get("/todos")
    def list_todos():
        return jsonify(run("SELECT id, title, done FROM todos ORDER BY id")[1])

    @app.post("/todos")
    def add_todo():
        title = (request.get_json(silent=True) or {{}}).get("title")
        if not isinstance(title, str) or not title.strip():
            return jsonify(error="title must be a text that is not empty"), 400
        cursor, _ = run("INSERT INTO todos (title, done) VALUES (?, 0)", title)
        return jsonify(id=cursor.lastrowid, title=title, done=False), 201

    @app.patch("/todos/<int:number>")
    def change_todo(number):
        done = bool((request.get_json(silent=True) or {{}}).get("done"))
        cursor, _ = run("UPDATE todos SET done = ? WHERE id = ?", int(done), number)
        if cursor.rowcount == 0:
            return jsonify(error="no such todo"), 404
        return jsonify(run("SELECT id, title, done FROM todos WHERE id = ?", number)[1][0])

    @app.delete("/todos/<int:number>")
    def delete_todo(number):
        cursor, _ = run("DELETE FROM todos WHERE id = ?", number)
        return ("", 204) if cursor.rowcount else (jsonify(error="no such todo"), 404)

    return app


def as_todo(row):
    return {{"id": row["id"], "title": row["title"], "done": bool(row["done"])}}
>>>>>>> REPLACE

{PACKAGE}/__main__.py
<<<<<<< SEARCH
=======
\"\"\"Starts the API: python -m {PACKAGE} [PORT [DATABASE]].\"\"\"

import sys

from {PACKAGE}.app import create_app

if __name__ == "__main__":
    port, database = [*sys.argv[1:], *["5000", "todos.db"][len(sys.argv) - 1 :]]
    create_app(database).run(host="127.0.0.1", port=int(port))
>>>>>>> REPLACE
"""


def reply(request: Request) -> str:
    return {"plan": json.dumps(PLAN), "reproduce": TESTS, "patch": CODE}[parse_question(request)]


@pytest.fixture
def somebody(user):
    """Return a user whose pip has the same network access as the pip of the test process."""
    reaching = re.compile(r"PIP_\w+|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|(?:https?|all|no)_proxy", re.IGNORECASE)
    user.environ |= {name: value for name, value in os.environ.items() if reaching.fullmatch(name)}
    return user


def install_project(out: Path, directory: Path) -> Path:
    """Install the project in a new environment, as its manifest says. Return the interpreter."""
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    python = directory / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "-q", ".[test]"], cwd=out, check=True)
    return python


@contextmanager
def serve_api(python: Path, folder: Path) -> Iterator[str]:
    """Serve the API on a free loopback port, in `folder`. Yield its address."""
    command = [str(python), "-m", PACKAGE, "0", str(folder / "todos.db")]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        lines = (re.search(r"Running on (http://127\.0\.0\.1:\d+)", line) for line in server.stderr)
        try:
            yield next(match[1] for match in lines if match)
        finally:
            server.terminate()


def call_api(address: str, body: object = None) -> object:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{address}/todos", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read())


@pytest.mark.soak
def test_flask_api_is_created_after_approval_and_runs_elsewhere(somebody, tmp_path):
    home = tmp_path / "work"
    home.mkdir()
    script = Recorded(reply)
    with ScriptedServer(script) as server:
        somebody.uses(server, Wire.openai)
        refused = somebody.redstart("create", GOAL, "--kind", "web_app", "--no-input", cwd=home)
        assert (refused.code, script.questions) == (7, ["plan"]), refused.out + refused.err
        assert "flask (the goal asks for a Flask API)" in refused.out
        assert "--approve" in refused.out
        assert not (home / FOLDER).exists()
        result = somebody.redstart("create", GOAL, "--kind", "web_app", "--no-input", "--approve", cwd=home)
        texts = {parse_question(request): request.text for request in server.requests}
    assert result.code == 0, result.out + result.err
    assert "10 tests written, all fail" in result.out
    assert "10 tests pass; they notice" in result.out
    assert all(criterion in texts["reproduce"] for criterion in CRITERIA)
    assert "http.server" not in texts["patch"]
    out = home / FOLDER
    assert 'dependencies = ["flask"]' in (out / "pyproject.toml").read_text()
    assert re.search(r"^flask==\d", (out / "requirements.lock").read_text(), re.MULTILINE)
    python = install_project(out, tmp_path / "venv")
    subprocess.run([str(python), "-m", "pytest", "-q"], cwd=out, check=True)
    with serve_api(python, tmp_path) as address:
        assert call_api(address, {"title": "buy milk"}) == {"id": 1, "title": "buy milk", "done": False}
        assert call_api(address) == [{"id": 1, "title": "buy milk", "done": False}]
