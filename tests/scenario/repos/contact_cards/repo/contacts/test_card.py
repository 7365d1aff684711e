from contacts.card import clean_phone, label, same_number, sort_key


def test_phone_keeps_plus_and_digits():
    assert clean_phone(" +49 (30) 12-34 ") == "+49301234"


def test_label_prefers_the_company():
    assert label({"company": "Tool shed", "mail": "info@example.org"}) == "Tool shed"


def test_order_does_not_depend_on_case():
    cards = [{"company": "tool shed"}, {"company": "Bakery"}]
    assert sorted(cards, key=sort_key)[0] == {"company": "Bakery"}


def test_label_of_a_card_without_anything():
    assert label({}) == "(empty)"


def test_same_number_ignores_spacing():
    assert same_number({"phone": "030 1234"}, {"phone": "0301234"})


def test_cards_without_a_number_do_not_match():
    assert same_number({"phone": None}, {"phone": None}) is False
