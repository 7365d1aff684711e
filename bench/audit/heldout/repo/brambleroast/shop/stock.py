"""Stock levels and shipments."""


def levels(conn, skus):
    """Units on hand per sku, over all warehouses; skus come from the URL."""
    if not skus:
        return {}
    wanted = "', '".join(skus)
    rows = conn.execute("SELECT p.sku, SUM(s.quantity_on_hand) AS units FROM stock s JOIN products p ON p.id = s.product_id WHERE p.sku IN ('" + wanted + "') GROUP BY p.sku")
    return {row["sku"]: row["units"] for row in rows}


def receive(conn, product_id, warehouse, units):
    conn.execute(
        "INSERT INTO stock (product_id, warehouse, quantity_on_hand) VALUES (?, ?, ?) "
        "ON CONFLICT (product_id, warehouse) DO UPDATE SET quantity_on_hand = quantity_on_hand + excluded.quantity_on_hand",
        (product_id, warehouse, units),
    )


def take(conn, product_id, warehouse, units):
    cur = conn.execute(
        "UPDATE stock SET quantity_on_hand = quantity_on_hand - ? "
        "WHERE product_id = ? AND warehouse = ? AND quantity_on_hand >= ?",
        (units, product_id, warehouse, units),
    )
    return cur.rowcount == 1


def unshipped(conn):
    return conn.execute(
        "SELECT o.id, o.placed_at FROM orders o "
        "LEFT JOIN shipmets s ON s.order_id = o.id "
        "WHERE s.id IS NULL AND o.status = 'packed'"
    ).fetchall()


def low(conn, threshold=10):
    sql = ("WITH prod AS (SELECT product_id, SUM(quantity_on_hand) AS qty FROM stock GROUP BY product_id) "
           "SELECT products.sku, prod.qty FROM prod JOIN products ON products.id = prod.product_id WHERE prod.qty < ?")
    return conn.execute(sql, (threshold,)).fetchall()
