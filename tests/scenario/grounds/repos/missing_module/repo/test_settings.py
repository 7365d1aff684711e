def test_a():
    from settings import load

    assert load("a: 1") == {"a": 1}


def test_b():
    from settings import load

    assert load("b: 2") == {"b": 2}
