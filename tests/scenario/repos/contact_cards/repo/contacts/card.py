"""Contact cards as they come from the phone's export: any field may be missing."""


def clean_phone(raw):
    """Digits only, with a leading + where there was one."""
    raw = raw.strip()
    digits = "".join(char for char in raw if char.isdigit())
    return "+" + digits if raw.startswith("+") else digits


def label(card):
    """How the card is listed: the company before the mail address before the number."""
    return card.get("company") or card.get("mail") or clean_phone(card.get("phone")) or "(empty)"


def same_number(one, other):
    """Whether two cards have the same phone number. Cards without a number never match."""
    first, second = clean_phone(one.get("phone")), clean_phone(other.get("phone"))
    return first != "" and first == second


def sort_key(card):
    """Cards are listed by their label, without regard to case."""
    return label(card).casefold()
