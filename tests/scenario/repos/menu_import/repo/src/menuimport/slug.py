import unicodedata


def slug(name: str) -> str:
    """The name as part of an address: plain letters, words joined by a hyphen."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    return "-".join(plain.lower().split())
