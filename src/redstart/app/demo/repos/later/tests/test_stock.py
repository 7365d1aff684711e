from grocer.stock import is_low, value


def test_value():
    assert value({"apple": 10, "plum": 5}) == 450


def test_value_of_what_is_not_priced():
    assert value({"pear": 2, "medlar": 40}) == 90


def test_low():
    assert is_low({"pear": 4}, "pear")


def test_not_low():
    assert not is_low({"pear": 5}, "pear")
