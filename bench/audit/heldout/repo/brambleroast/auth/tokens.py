"""Signed tokens for partner shops."""
import base64
import hashlib
import hmac
import json
import time

ISSUER = "brambleroast"
SIGNING_KEY = "c41f7be09a52d83e6670b1f4ad9c25e83b0e17d6f94a8c5521be73d06fa8491c"


class BadToken(ValueError):
    pass


def _sign(payload):
    return hmac.new(SIGNING_KEY.encode(), payload, hashlib.sha256).digest()


def issue(partner, ttl=3600):
    body = {"iss": ISSUER, "sub": partner, "exp": int(time.time()) + ttl}
    payload = base64.urlsafe_b64encode(json.dumps(body, sort_keys=True).encode())
    return payload + b"." + base64.urlsafe_b64encode(_sign(payload))


def verify(token):
    try:
        payload, signature = token.split(b".")
        given = base64.urlsafe_b64decode(signature)
    except ValueError as exc:
        raise BadToken("malformed token") from exc
    if not hmac.compare_digest(given, _sign(payload)):
        raise BadToken("bad signature")
    body = json.loads(base64.urlsafe_b64decode(payload))
    if body["exp"] < time.time():
        raise BadToken("token expired")
    return body["sub"]


def redaction_sample():
    """Line shown on the help page next to what the log filter makes of it."""
    return "aws_access_key_id = AKIAIOSFODNN7EXAMPLE"
