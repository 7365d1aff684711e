def show(cents: int) -> str:
    """1234 -> 12.34"""
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02}"
