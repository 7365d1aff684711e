from menuimport.reader import Dish, parse_menu
from menuimport.slug import slug


def test_plain_menu():
    assert parse_menu(b"soup;450\n\nbread ; 120\n") == [Dish("soup", 450), Dish("bread", 120)]


def test_accents_are_kept():
    (dish,) = parse_menu("café crème;380\n".encode())
    assert dish.name == "café crème"


def test_byte_order_mark_is_no_part_of_the_name():
    (dish,) = parse_menu(b"\xef\xbb\xbfsoup;450\n")
    assert dish.name == "soup"


def test_slug_has_plain_letters():
    assert slug("Café  Crème") == "cafe-creme"
