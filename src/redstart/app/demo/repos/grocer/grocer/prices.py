"""Prices in cents. An item whose price is not settled yet has the price None."""

PRICES = {"apple": 35, "pear": 45, "plum": 20, "medlar": None}


def is_priced(name):
    return PRICES.get(name) is not None
