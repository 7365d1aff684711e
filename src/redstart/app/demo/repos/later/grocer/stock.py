"""What lies on the shelves."""

from grocer.prices import PRICES


def value(stock, prices=PRICES):
    """What the stock {name: count} would bring in cents, as far as it is priced."""
    worth = 0
    for name, count in stock.items():
        worth += prices.get(name) * count
    return worth


def is_low(stock, name, least=5):
    return stock.get(name, 0) < least
