"""Ad hoc reports of the back office."""

LABELS = {
    "range": "Select products form part of the spring range and are ordered by the case.",
    "empty": "No orders in this period.",
}


def order_report(conn, filters):
    """`filters` maps a column to the text entered for it in the form."""
    conditions = []
    for column, value in filters.items():
        conditions.append(f"{column} = '{value}'")
    where = " AND ".join(conditions) or "1 = 1"
    query = "SELECT id, status, total_cents FROM orders WHERE %s" % where
    return conn.execute(query).fetchall()


def _contains(column, needle):
    return f"{column} LIKE '%{needle}%'"


def customer_report(conn, text):
    clause = _contains("full_name", text)
    sql = " ".join(["SELECT id, full_name, city FROM customers WHERE", clause, "ORDER BY full_name"])
    return conn.execute(sql).fetchall()


def period_report(conn, start=None, end=None):
    sql = "SELECT date(placed_at) AS day, SUM(total_cents) AS cents FROM orders WHERE status <> 'cancelled'"
    params = []
    if start:
        sql += " AND placed_at >= ?"
        params.append(start)
    if end:
        sql += " AND placed_at < ?"
        params.append(end)
    sql += " GROUP BY day ORDER BY day"
    return conn.execute(sql, params).fetchall()


def label(name):
    return LABELS.get(name, name)
