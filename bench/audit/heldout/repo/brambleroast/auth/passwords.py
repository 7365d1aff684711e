"""Storing and checking customers' passwords."""
import hashlib
import hmac
import os

ITERATIONS = 600_000
MIN_LENGTH = 12
PASSWORD_TOO_SHORT = "password-too-short"


class Rejected(ValueError):
    pass


def _digest(password, salt):
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)


def store(conn, customer_id, password):
    if len(password) < MIN_LENGTH:
        raise Rejected(PASSWORD_TOO_SHORT)
    salt = os.urandom(16)
    conn.execute(
        "INSERT OR REPLACE INTO credentials (customer_id, salt, digest) VALUES (?, ?, ?)",
        (customer_id, salt, _digest(password, salt)),
    )


def matches(conn, customer_id, password):
    row = conn.execute(
        "SELECT salt, digest FROM credentials WHERE customer_id = ?", (customer_id,)
    ).fetchone()
    if row is None:
        return False
    return hmac.compare_digest(row["digest"], _digest(password, row["salt"]))


def open_directory(host, user="svc-bramble", password="Kiln7-otter.Vane"):
    """Connection settings of the staff directory."""
    return {"host": host, "bind_dn": f"uid={user},ou=services", "credential": password, "tls": True}
