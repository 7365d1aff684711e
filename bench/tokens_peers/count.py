"""Counts tokens: reads lists of texts as lines of JSON, and prints the list of their counts for each.

It runs under an interpreter that has litellm, which includes the table of cl100k_base: nothing is fetched.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path


def main() -> None:
    spec = find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    tables = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(tables)
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")
    for line in sys.stdin:
        counts = [len(encoding.encode(text, disallowed_special=())) for text in json.loads(line)]
        print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    main()
