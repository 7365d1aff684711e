from __future__ import annotations

import pytest

from redstart.toolkit.base.tracebacks import find_frames, parse_tracebacks, strip_colors

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
    assert [(frame.path, frame.number) for frame in find_frames(text, FILES)] == [
        ("tests/test_cart.py", 6),
        ("src/shop/cart.py", 25),
        ("src/shop/cart.py", 14),
        ("app.py", 3),
        ("src/shop/cart.py", 14),
    ]


def test_line_followed_by_a_message_is_a_mention_and_not_a_frame() -> None:
    text = "app.py:3: KeyError: 'x'\ncore.py:4: in total\n    return sum(items)"
    (traceback,) = parse_tracebacks(text)
    assert [(frame.path, frame.number) for frame in traceback.mentions] == [("app.py", 3), ("core.py", 4)]
    assert [(frame.path, frame.name, frame.code) for frame in traceback.frames] == [
        ("core.py", "total", "return sum(items)")
    ]


def test_quoted_and_unparsed_frames_are_separated_from_executed_ones() -> None:
    text = (
        '  File "core.py", line 4, in total\n    import app\n  File "app.py", line 3\n    def f(:\nSyntaxError: x\n'
        'E     File "other.py", line 9, in g'
    )
    (traceback,) = parse_tracebacks(text)
    assert [(frame.path, frame.is_unparsed, frame.is_quoted) for frame in traceback.frames] == [
        ("core.py", False, False),
        ("app.py", True, False),
        ("other.py", False, True),
    ]


def test_each_exception_of_a_chain_is_a_traceback_with_its_link_type() -> None:
    context = "During handling of the above exception, another exception occurred:"
    cause = "The above exception was the direct cause of the following exception:"
    text = f"app.py:1: KeyError\n\n{context}\n\napp.py:2: ValueError\n\n{cause}\n\napp.py:3: OSError"
    chain = parse_tracebacks(strip_colors(text.replace("\n", "\r\n")))
    assert [(traceback.frames[0].number, traceback.handling) for traceback in chain] == [
        (1, False),
        (2, True),
        (3, False),
    ]


def test_node_frames_are_read_outermost_first() -> None:
    text = "    at Cart.add [as sum] (/work/app.js:3:5)\n    at async Object.<anonymous> (file:///work/test.js:9:1)"
    assert [(frame.path, frame.number, frame.name) for frame in parse_tracebacks(text)[0].frames] == [
        ("/work/test.js", 9, ""),
        ("/work/app.js", 3, "Cart.add"),
    ]
    assert [frame.path for frame in find_frames(text, {"app.js"})] == ["app.js"]


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
def test_frames_outside_the_tree_are_omitted(line: str) -> None:
    assert find_frames(line, FILES) == []
