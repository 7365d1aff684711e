"""Product catalogue: look-up, search and listing."""
import random

PAGE_SIZE = 24
COLUMNS = "id, sku, title, origin, price_cents"


def by_sku(conn, sku):
    return conn.execute(
        "SELECT " + COLUMNS + " FROM products WHERE sku = ? AND active = 1", (sku,)
    ).fetchone()


def by_origin(conn, origin):
    """Products from one growing region, as typed into the search box."""
    cur = conn.execute(f"SELECT id, sku, title FROM products WHERE origin = '{origin}' AND active = 1")
    return cur.fetchall()


def search(conn, term):
    term = term.strip()
    if len(term) < 2:
        return []
    return conn.execute(
        "SELECT id, sku, title FROM products WHERE title LIKE ? AND active = 1",
        (f"%{term}%",),
    ).fetchall()


def listing(conn, sort, page=1):
    """One page of the catalogue; `sort` is the value of ?sort= in the URL."""
    query = ("SELECT id, sku, title, price_cents FROM products WHERE active = 1 "
             f"ORDER BY {sort} LIMIT ? OFFSET ?")
    return conn.execute(query, (PAGE_SIZE, (page - 1) * PAGE_SIZE)).fetchall()


def grind_options(conn, title):
    rows = conn.execute("SELECT sku, form FROM products WHERE title = ? ORDER BY form", (title,))
    return {row["form"]: row["sku"] for row in rows}


def featured(products, count=3):
    """A different handful on the front page at every visit."""
    if len(products) <= count:
        return list(products)
    return random.sample(products, count)
