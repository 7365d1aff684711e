"""A user's own program as the model: real processes, and each way in which one can fail."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, Tier, Tool, ToolCall, Usage
from redstart.core.errors import (
    ConfigError,
    ModelBusy,
    ModelError,
    ModelGarbled,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
)
from redstart.ports.model.command import MAX_OUTPUT_BYTES, Command
from redstart.ports.model.port import Model
from redstart.testing.contracts.model import HIDDEN_VALUE, ModelContract, Script

pytestmark = pytest.mark.slow

ASK = Ask(question="patch", tier=Tier.strong, messages=(Message(role=Role.user, text="naïve?"),), site="1/patch/0")
READ = Tool(name="read", description="Reads.", parameters={"type": "object"})

SCRIPTED = """
import json, sys
from pathlib import Path
said = json.loads(Path(sys.argv[1]).read_text())[json.load(sys.stdin)["messages"][-1]["text"]]
if said is None:
    sys.exit("out of order")
print(json.dumps(said))
"""


def create_command(code: str, *arguments: object, deadline: float = 120.0) -> Command:
    argv = [sys.executable, "-c", code, *(str(argument) for argument in arguments)]
    return Command(shlex.join(argv), name="command:it", deadline=deadline)


def ask_command(code: str, *, deadline: float = 120.0, ask: Ask = ASK) -> Answer:
    return asyncio.run(create_command(code, deadline=deadline).ask(ask))


class TestCommand(ModelContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.script = tmp_path / "script.json"

    @contextmanager
    def open_model(self, script: Script) -> Iterator[Model]:
        fields = {"text", "fault", "calls"}
        answers = {key: answer and answer.model_dump(mode="json", include=fields) for key, answer in script.items()}
        self.script.write_text(json.dumps(answers))
        yield create_command(SCRIPTED, self.script)


def test_command_reads_the_question_as_json_and_may_answer_in_plain_text() -> None:
    answer = ask_command(
        "import json, sys; ask = json.load(sys.stdin); print(ask['question'], ask['messages'][0]['text'])"
    )
    assert answer.text == "patch naïve?\n"
    assert answer.model == "command:it"
    assert answer.usage.usd is None
    assert answer.usage.input_tokens > 0


def test_json_with_other_fields_is_taken_as_the_answer_text() -> None:
    card = '{"summary": "off by one", "fix": "no extra one"}'
    assert ask_command(f"print({card!r})").text == card + "\n"


def test_model_and_usage_reported_by_the_command_are_kept() -> None:
    output = {"text": "yes", "model": "openai:x", "usage": {"input_tokens": 7, "output_tokens": 2, "usd": 0.5}}
    answer = ask_command(f"print({json.dumps(output)!r})")
    assert (answer.model, answer.usage) == ("openai:x", Usage(input_tokens=7, output_tokens=2, usd=0.5))


def test_command_receives_tools_and_may_call_them() -> None:
    code = (
        "import json, sys; name = json.load(sys.stdin)['tools'][0]['name'];"
        "print(json.dumps({'calls': [{'name': name, 'arguments': {'path': 'a.py'}},"
        " {'name': name, 'arguments': 'no json', 'id': 'mine'}]}))"
    )
    answer = ask_command(code, ask=ASK.model_copy(update={"tools": (READ,)}))
    assert answer.fault is None
    assert answer.calls == (
        ToolCall(id="call-1-0", name="read", arguments='{"path": "a.py"}'),
        ToolCall(id="mine", name="read", arguments="no json"),
    )


def test_blank_output_is_an_empty_answer() -> None:
    assert ask_command("print('  ')").fault is AnswerFault.empty


@pytest.mark.parametrize(
    ("code", "kind", "pattern"),
    [
        ("import sys; print('lost'); sys.exit('no such model')", ModelRefused, "exit code 1: no such model"),
        ("import sys; sys.exit(75)", ModelBusy, "exit code 75"),
        ("import os; os.kill(os.getpid(), 9)", ModelUnreachable, "killed by SIGKILL"),
        ('print(\'{"text": "half of\')', ModelGarbled, "cut off"),
        ("print('{\"text\": 5}')", ModelGarbled, "text: "),
        ('print(\'{"text": "a", "fault": "tired"}\')', ModelGarbled, "fault: "),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\xfe')", ModelGarbled, "not UTF-8"),
        (f"import sys; sys.stdout.write('x' * {MAX_OUTPUT_BYTES + 5})", ModelGarbled, "more than 8 MB"),
    ],
)
def test_each_kind_of_failure_has_its_own_message(code: str, kind: type[ModelError], pattern: str) -> None:
    with pytest.raises(kind, match=pattern):
        ask_command(code)


def test_large_stderr_does_not_block_the_command() -> None:
    assert ask_command("import sys; sys.stderr.write('x' * 3_000_000); print('fine')").text == "fine\n"


def test_command_that_times_out_is_killed_with_its_children(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    child = (
        "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
    )
    began = time.monotonic()
    with pytest.raises(ModelTimeout, match="within 3 seconds"):
        ask_command(f"{child} open({str(pid)!r}, 'w').write(str(p.pid)); time.sleep(600)", deadline=3.0)
    while _is_alive(int(pid.read_text())):
        assert time.monotonic() - began < 60


def _is_alive(pid: int) -> bool:
    """Tell whether a process is alive; a killed process that nobody has waited for yet counts as dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_command_runs_without_a_shell_unless_the_user_names_one(tmp_path: Path) -> None:
    plain_command = Command("echo '$HOME' ';' touch here", name="command:echo", deadline=120)
    assert asyncio.run(plain_command.ask(ASK)).text == "$HOME ; touch here\n"
    shell = Command("sh -c 'echo $((1 + 1))'", name="command:sh", deadline=120)
    assert asyncio.run(shell.ask(ASK)).text == "2\n"


@pytest.mark.parametrize("command_line", ["", "   ", "no-such-program-here --now", "'open"])
def test_setting_that_names_no_program_is_rejected(command_line: str) -> None:
    with pytest.raises(ConfigError, match="command:") as caught:
        Command(command_line, name=f"command:{command_line}", deadline=120)
    assert caught.value.remedy


def test_stderr_is_shown_without_keys() -> None:
    environ = {**os.environ, "SOME_API_KEY": HIDDEN_VALUE}
    code = "import os, sys; sys.exit('bad key ' + os.environ['SOME_API_KEY'])"
    model = Command(shlex.join([sys.executable, "-c", code]), name="command:it", deadline=120, environ=environ)
    with pytest.raises(ModelRefused, match="bad key «secret:some_api_key»"):
        asyncio.run(model.ask(ASK))
