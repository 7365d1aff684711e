from __future__ import annotations

import pytest

from redstart.toolkit.retrieval.frames import Frame, frames

FILES = {"src/shop/cart.py", "tests/test_cart.py", "app.py", "core.py"}


def test_pytest_and_python_frames_are_read_outermost_first() -> None:
    text = "\n".join(
        (
            "tests/test_cart.py:6: ",
            "src/shop/cart.py:25: in total",
            '  File "/work/copy/src/shop/cart.py", line 14, in priced',
            'E     File "/work/copy/app.py", line 3',
            "src/shop/cart.py:14: KeyError",
        )
    )
    assert frames(text, FILES) == [
        Frame("tests/test_cart.py", 6),
        Frame("src/shop/cart.py", 25),
        Frame("src/shop/cart.py", 14),
        Frame("app.py", 3),
        Frame("src/shop/cart.py", 14),
    ]


@pytest.mark.parametrize(
    "line",
    [
        '  File "/usr/lib/python3.12/core.py", line 3, in f',
        '  File "/x/.venv/lib/python3.12/site-packages/lib/core.py", line 3, in f',
        "../core.py:3: in f",
        "<frozen importlib._bootstrap>:12: in f",
        "    assert core.py:3:",
        "---- Captured stdout call ----\ncore.py:3: in f",
    ],
)
def test_what_is_not_a_frame_of_the_tree_is_left_out(line: str) -> None:
    assert frames(line, FILES) == []
