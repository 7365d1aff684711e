from __future__ import annotations

import pytest

from redstart.toolkit.base.tracebacks import frames_within, plain, tracebacks

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
    assert [(frame.path, frame.number) for frame in frames_within(text, FILES)] == [
        ("tests/test_cart.py", 6),
        ("src/shop/cart.py", 25),
        ("src/shop/cart.py", 14),
        ("app.py", 3),
        ("src/shop/cart.py", 14),
    ]


def test_a_line_with_a_message_behind_it_is_mentioned_but_is_no_frame() -> None:
    text = "app.py:3: KeyError: 'x'\ncore.py:4: in total\n    return sum(items)"
    (traceback,) = tracebacks(text)
    assert [(frame.path, frame.number) for frame in traceback.mentions] == [("app.py", 3), ("core.py", 4)]
    assert [(frame.path, frame.name, frame.code) for frame in traceback.frames] == [
        ("core.py", "total", "return sum(items)")
    ]


def test_what_an_exception_quotes_and_what_python_could_not_read_are_told_apart_from_what_ran() -> None:
    text = (
        '  File "core.py", line 4, in total\n    import app\n  File "app.py", line 3\n    def f(:\nSyntaxError: x\n'
        'E     File "other.py", line 9, in g'
    )
    (traceback,) = tracebacks(text)
    assert [(frame.path, frame.unread, frame.quoted) for frame in traceback.frames] == [
        ("core.py", False, False),
        ("app.py", True, False),
        ("other.py", False, True),
    ]


def test_each_exception_of_a_chain_is_a_traceback_and_knows_how_it_came_up() -> None:
    during = "During handling of the above exception, another exception occurred:"
    cause = "The above exception was the direct cause of the following exception:"
    text = f"app.py:1: KeyError\n\n{during}\n\napp.py:2: ValueError\n\n{cause}\n\napp.py:3: OSError"
    found = tracebacks(plain(text.replace("\n", "\r\n")))
    assert [(traceback.frames[0].number, traceback.handling) for traceback in found] == [
        (1, False),
        (2, True),
        (3, False),
    ]


def test_frames_of_node_are_read_outermost_first() -> None:
    text = "    at Cart.add [as sum] (/work/app.js:3:5)\n    at async Object.<anonymous> (file:///work/test.js:9:1)"
    assert [(frame.path, frame.number, frame.name) for frame in tracebacks(text)[0].frames] == [
        ("/work/test.js", 9, ""),
        ("/work/app.js", 3, "Cart.add"),
    ]
    assert [frame.path for frame in frames_within(text, {"app.js"})] == ["app.js"]


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
    assert frames_within(line, FILES) == []
