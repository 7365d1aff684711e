from ledger.money import show


def test_two_places():
    assert show(1205) == "12.05"


def test_negative():
    assert show(-7) == "-0.07"
