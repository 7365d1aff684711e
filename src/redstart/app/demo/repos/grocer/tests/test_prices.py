from grocer.prices import is_priced


def test_priced():
    assert is_priced("plum")


def test_not_priced_yet():
    assert not is_priced("medlar")


def test_unknown_is_not_priced():
    assert not is_priced("durian")
