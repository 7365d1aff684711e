from total import total


def test_right():
    assert total([2]) == 2
