from grocer.basket import discount, lines, total


def test_total_of_nothing():
    assert total({}) == 0


def test_total_of_one_kind():
    assert total({"apple": 2}) == 70


def test_total_of_several_kinds():
    assert total({"apple": 1, "pear": 2}) == 125


def test_unpriced_items_are_not_charged():
    assert total({"apple": 1, "medlar": 3}) == 35


def test_only_unpriced_items():
    assert total({"medlar": 1}) == 0


def test_unknown_items_are_not_charged():
    assert total({"plum": 1, "durian": 2}) == 20


def test_lines_are_sorted():
    assert lines({"pear": 1, "apple": 2}) == ["2 x apple", "1 x pear"]


def test_lines_leave_out_what_is_not_priced():
    assert lines({"medlar": 1, "plum": 1}) == ["1 x plum"]


def test_discount():
    assert discount(1000, 10) == 900
