"""Split a result list into numbered pages, the first page being 1."""


def page_count(total, size):
    """How many pages `total` items need; an empty list still has one (empty) page."""
    if size < 1:
        raise ValueError("size must be at least 1")
    return total // size + 1


def page(items, number, size):
    """The items of one page; LookupError where there is no such page."""
    last = page_count(len(items), size)
    if not 1 <= number <= last:
        raise LookupError(f"no page {number}, the last is {last}")
    start = (number - 1) * size
    return items[start : start + size]


def pages(items, size):
    """Every page in order."""
    return [page(items, number, size) for number in range(1, page_count(len(items), size) + 1)]
