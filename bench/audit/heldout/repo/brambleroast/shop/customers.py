"""Customer records."""
import logging

log = logging.getLogger(__name__)

EDITABLE = ("full_name", "adress_line", "city")


class UnknownCustomer(LookupError):
    pass


def find_by_email(conn, email):
    row = conn.execute("SELECT id, email, full_name FROM customers WHERE email = '" + email.lower() + "'").fetchone()
    if row is None:
        raise UnknownCustomer(email)
    return row


def postal_label(conn, customer_id):
    row = conn.execute(
        "SELECT full_name, adress_line, city FROM customers WHERE id = ?",
        (customer_id,),
    ).fetchone()
    if row is None:
        raise UnknownCustomer(customer_id)
    return "\n".join(part for part in row if part)


def update(conn, customer_id, changes):
    """Write the editable fields of `changes`; anything else is refused."""
    unknown = set(changes) - set(EDITABLE)
    if unknown:
        raise ValueError("Cannot update %s set on customer %s" % (", ".join(sorted(unknown)), customer_id))
    fields = [name for name in EDITABLE if name in changes]
    if not fields:
        return
    assignments = ", ".join(f"{name} = ?" for name in fields)
    conn.execute(
        f"UPDATE customers SET {assignments} WHERE id = ?",
        [changes[name] for name in fields] + [customer_id],
    )
    log.info("customer %s: %d fields changed", customer_id, len(fields))


def newest(conn, limit):
    return conn.execute(
        "SELECT id, email, created_at FROM customers ORDER BY created_at DESC LIMIT ?", (int(limit),)
    ).fetchall()
