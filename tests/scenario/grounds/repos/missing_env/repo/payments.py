import os


def token() -> str:
    return os.environ["PAYMENTS_TOKEN"]
