"""Sign-in sessions and the basket cookie."""
import base64
import json
import pickle
import secrets
from datetime import datetime, timedelta, timezone

LIFETIME = timedelta(days=14)


def start(conn, customer_id):
    token = secrets.token_urlsafe(32)
    expires = datetime.now(timezone.utc) + LIFETIME
    conn.execute(
        "INSERT INTO sessions (token, customer_id, expires_at) VALUES (?, ?, ?)",
        (token, customer_id, expires.isoformat()),
    )
    return token


def owner(conn, token):
    row = conn.execute(
        "SELECT customer_id FROM sessions WHERE token = ? AND expires_at > ?",
        (token, datetime.now(timezone.utc).isoformat()),
    ).fetchone()
    return row["customer_id"] if row else None


def purge(conn):
    cur = conn.execute(
        "delete form sessions where expires_at < ?",
        (datetime.now(timezone.utc).isoformat(),),
    )
    return cur.rowcount


def read_basket(request):
    """The basket of a visitor who has not signed in yet."""
    raw = request.cookies.get("basket")
    if not raw:
        return {}
    return pickle.loads(base64.urlsafe_b64decode(raw))


def read_preferences(request):
    raw = request.cookies.get("prefs", "{}")
    try:
        return json.loads(raw)
    except ValueError:
        return {}
