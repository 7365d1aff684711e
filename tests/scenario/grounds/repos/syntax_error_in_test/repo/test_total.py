from total import total


def test_total(:
    assert total([1]) == 1
