import pytest

from pager import page, page_count, pages


def test_a_full_last_page_is_not_followed_by_an_empty_one():
    assert page_count(20, 10) == 2


def test_the_rest_gets_its_own_page():
    assert page_count(21, 10) == 3


def test_nothing_is_one_empty_page():
    assert page_count(0, 10) == 1
    assert page([], 1, 10) == []


def test_page_holds_its_items():
    assert page(list("abcde"), 2, 2) == ["c", "d"]
    assert page(list("abcde"), 3, 2) == ["e"]


def test_all_pages():
    assert pages("abcd", 3) == ["abc", "d"]


def test_page_after_the_last_is_refused():
    with pytest.raises(LookupError):
        page(list("abcd"), 3, 2)


def test_size_must_be_positive():
    with pytest.raises(ValueError):
        page_count(3, 0)
