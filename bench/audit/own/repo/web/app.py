"""The shop's pages."""

import hashlib
import random
import secrets

import jinja2
import requests
import yaml
from flask import Flask

app = Flask(__name__)


def stored(password):
    return hashlib.md5(password.encode()).hexdigest()


def reset_token():
    return "".join(random.choice("0123456789abcdef") for _ in range(32))


def fetch(address):
    return requests.get(address, verify=False, timeout=10)


def configured(stream):
    return yaml.load(stream, Loader=yaml.Loader)


def formula(request):
    return eval(request.args["formula"])


def delete(user, post):
    assert user.is_admin, "only for administrators"
    post.delete()


def etag(data):
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def invitation():
    return secrets.token_urlsafe(16)


def colour():
    return random.choice(["red", "green", "blue"])



def safely(stream):
    return yaml.load(stream, Loader=yaml.SafeLoader)


pages = jinja2.Environment(autoescape=jinja2.select_autoescape())


if __name__ == "__main__":
    app.run(debug=True)
