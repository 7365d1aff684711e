"""Reads a menu that was exported by the till: one `dish;price in cents` a line, UTF-8, maybe with a byte order mark."""

from typing import NamedTuple


class Dish(NamedTuple):
    name: str
    cents: int


def parse_menu(data: bytes) -> list[Dish]:
    """The dishes in order. Empty lines are skipped."""
    text = data.decode("ascii")
    dishes = []
    for line in text.splitlines():
        if line.strip():
            name, _, cents = line.partition(";")
            dishes.append(Dish(name.strip(), int(cents)))
    return dishes
