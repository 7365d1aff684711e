"""aider's own appliers behind pipes: a case as a line of JSON in, what became of the file as a line of JSON out.

Runs under an interpreter that has aider-chat; its coders read and write real files in a folder of their own.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from aider.coders.editblock_coder import EditBlockCoder
from aider.coders.patch_coder import PatchCoder
from aider.coders.udiff_coder import UnifiedDiffCoder
from aider.coders.wholefile_coder import WholeFileCoder
from aider.io import InputOutput

FENCE = ("```", "```")


def coder_for(answer: str):
    """The coder whose form the answer has, and the answer as that coder's prompt asks for it."""
    if "*** Begin Patch" in answer or "*** Update File" in answer:
        return PatchCoder, answer[max(answer.find("*** Begin Patch"), 0) :]
    if "<<<<<<<" in answer:
        return EditBlockCoder, answer
    if "@@" in answer or "\n+++ " in answer:
        return UnifiedDiffCoder, answer if "```" in answer else f"```diff\n{answer}\n```\n"
    return WholeFileCoder, answer


def applied(root: Path, io: InputOutput, path: str, old: str, answer: str) -> str:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(old.encode())
    kind, text = coder_for(answer)
    coder = object.__new__(kind)
    coder.root, coder.io, coder.fence = str(root), io, FENCE
    coder.abs_fnames, coder.abs_root_path_cache, coder.shell_commands = {str(file)}, {}, []
    coder.partial_response_content, coder.multi_response_content = text, ""
    try:
        coder.apply_edits(coder.get_edits())
    except Exception as error:  # whatever it raises, what counts is the file that it leaves
        print(type(error).__name__, file=sys.stderr)
    return file.read_bytes().decode(errors="replace") if file.exists() else ""


def main() -> None:
    io = InputOutput(pretty=False, yes=True, fancy_input=False)
    io.tool_output = io.tool_warning = io.tool_error = lambda *_, **__: None
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        case = json.loads(line)
        with tempfile.TemporaryDirectory(prefix="redstart-aider-") as folder:
            after = applied(Path(folder).resolve(), io, case["path"], case["old"], case["answer"])
        print(json.dumps(after), file=answers, flush=True)


if __name__ == "__main__":
    main()
