from clock import noon


def test_noon():
    assert noon().utcoffset().total_seconds() == 7200
