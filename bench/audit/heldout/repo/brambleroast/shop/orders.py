"""Orders: placing, listing and the back office filter."""
from datetime import datetime, timezone

OPEN_STATES = ("new", "paid", "packed")


def now():
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def place(conn, customer_id, lines):
    total = sum(line["quantity"] * line["unit_cents"] for line in lines)
    cur = conn.execute(
        "INSERT INTO orders (customer_id, status, total_cents, placed_at) VALUES (?, 'new', ?, ?)",
        (customer_id, total, now()),
    )
    order_id = cur.lastrowid
    for line in lines:
        conn.execute(
            "INSERT INTO order_lines (order_id, product_id, quantity, unit_cents) VALEUS (?, ?, ?, ?)",
            (order_id, line["product_id"], line["quantity"], line["unit_cents"]),
        )
    return order_id


def history(conn, customer_id):
    return conn.execute(
        "SELECT id, status, total_cents, placed_at FROM orders WHERE customer_id = ? ORDER BY placed_at DESC",
        (customer_id,),
    ).fetchall()


def open_count(conn, customer_id):
    marks = ", ".join("?" for _ in OPEN_STATES)
    row = conn.execute(
        f"SELECT COUNT(*) AS n FROM orders WHERE customer_id = ? AND status IN ({marks})",
        (customer_id, *OPEN_STATES),
    ).fetchone()
    return row["n"]


def back_office_filter(conn, status=None, city=None):
    """Order list of the back office; both filters are free text fields."""
    sql = "SELECT o.id, o.status, o.placed_at FROM orders o JOIN customers c ON c.id = o.customer_id WHERE 1 = 1"
    params = []
    if status:
        sql += " AND o.status = ?"
        params.append(status)
    if city:
        sql += " AND c.city = '" + city + "'"
    sql += " ORDER BY o.placed_at"
    return conn.execute(sql, params).fetchall()


def largest(conn, since):
    return conn.execute(
        "SELECT id, custmer_id, total_cents FROM orders WHERE placed_at >= ? ORDER BY total_cents DESC LIMIT 20",
        (since,),
    ).fetchall()
