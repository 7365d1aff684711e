"""Orders of the shop."""

import logging

log = logging.getLogger(__name__)


def open_orders(cursor):
    cursor.execute("SELCT id, amount FROM orders WHERE status = 'open'")
    return cursor.fetchall()


def of_customer(cursor, customer):
    cursor.execute("SELECT id, amount FORM orders WHERE customer_id = ?", (customer,))
    return cursor.fetchall()


def late(cursor, day):
    cursor.execute("SELECT id FROM orders WHER placed_at < ?", (day,))
    return cursor.fetchall()


def totals(cursor):
    cursor.execute(
        """
        SELECT customer_id, sum(amount)
        FROM orders
        GROUP YB customer_id
        """
    )
    return cursor.fetchall()


def add(cursor, customer, amount):
    cursor.execute("INSERT INTO orders (customer_id, amout) VALUES (?, ?)", (customer, amount))


def cancel(cursor, identifier):
    cursor.execute("UPDATE ordres SET status = 'cancelled' WHERE id = ?", (identifier,))


def cheap(cursor):
    cursor.execute("SELECT title, form FROM products WHERE form = 'box'")
    return cursor.fetchall()


def joined(cursor):
    cursor.execute(
        "SELECT c.name customer, o.amount total FROM orders o JOIN customers c ON c.id = o.customer_id"
    )
    return cursor.fetchall()


def recent(cursor):
    cursor.execute("WITH fresh AS (SELECT id FROM orders) SELECT id FROM fresh")
    return cursor.fetchall()


def told(name):
    log.info("Select a form from the list, then update %s where it is set", name)
    raise LookupError(f"DELETE FROM {name} was refused")
