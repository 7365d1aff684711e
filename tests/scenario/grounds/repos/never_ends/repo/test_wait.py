import threading


def test_wait():
    assert threading.Event().wait()
