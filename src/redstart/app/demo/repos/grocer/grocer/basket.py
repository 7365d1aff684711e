"""What a customer carries to the till."""

from grocer.prices import PRICES


def total(basket, prices=PRICES):
    """The sum in cents of a basket {name: count}. What has no price yet is not charged."""
    return sum(prices.get(name) * count for name, count in basket.items())


def lines(basket, prices=PRICES):
    """The lines of the receipt, sorted by name."""
    return [f"{count} x {name}" for name, count in sorted(basket.items()) if prices.get(name)]


def discount(cents, percent):
    """`cents` less a discount, rounded down in the customer's favour."""
    return cents - cents * percent // 100
