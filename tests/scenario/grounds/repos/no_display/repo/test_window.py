"""As with tkinter on a machine without a screen, but for any interpreter: the code below says that it is tkinter's."""

TKINTER = """
class TclError(Exception):
    pass


def window():
    raise TclError("no display name and no $DISPLAY environment variable")
"""


def test_window():
    names = {"__name__": "_tkinter"}
    exec(compile(TKINTER, "/usr/lib/python3/tkinter/__init__.py", "exec"), names)
    assert names["window"]()
