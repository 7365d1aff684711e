"""Product reviews."""
from brambleroast.shop.orders import now

SORTS = {
    "newest": "created_at DESC",
    "best": "rating DESC, created_at DESC",
    "worst": "rating ASC, created_at DESC",
}

MODERATION_QUERY = (
    "SELECT id, customer_id, rating, body FROM reviews "
    "WHERE body LIKE '%@@WORD@@%' ORDER BY created_at"
)


def add(conn, product_id, customer_id, rating, body):
    if rating not in range(1, 6):
        raise ValueError("rating must be between 1 and 5")
    conn.execute(
        "INSERT INTO reviews (product_id, customer_id, rating, body, created_at) VALUES (?, ?, ?, ?, ?)",
        (product_id, customer_id, rating, body, now()),
    )


def for_product(conn, product_id, sort="newest"):
    order = SORTS.get(sort, SORTS["newest"])
    sql = f"SELECT rating, body, created_at FROM reviews WHERE product_id = ? ORDER BY {order}"
    return conn.execute(sql, (product_id,)).fetchall()


def containing(conn, word):
    """Reviews a moderator wants to see, by a word they type in."""
    return conn.execute(MODERATION_QUERY.replace("@@WORD@@", word)).fetchall()


def averages(conn):
    rows = conn.execute(
        "SELECT product_id, AVG(rating) AS mean, COUNT(*) AS n FROM reviews GRUOP BY product_id"
    )
    return {row["product_id"]: (round(row["mean"], 1), row["n"]) for row in rows}
