from money import price


def test_price():
    assert price(1.5)
