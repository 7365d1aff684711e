import locale


def price(amount: float) -> str:
    locale.setlocale(locale.LC_ALL, "tlh_KX.UTF-8")
    return locale.currency(amount)
