import socket


class OperationalError(Exception):
    """As a database driver raises it."""


def connect(host: str = "127.0.0.1", port: int = 5432) -> socket.socket:
    try:
        return socket.create_connection((host, port), timeout=5)
    except OSError as error:
        raise OperationalError(f'connection to server at "{host}", port {port} failed: Connection refused') from error


def users() -> list[str]:
    with connect() as wire:
        wire.sendall(b"select name from users")
        return wire.recv(1000).decode().splitlines()
