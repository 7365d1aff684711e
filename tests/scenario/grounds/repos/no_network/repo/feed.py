import socket


def fetch() -> bytes:
    with socket.create_connection(("192.0.2.1", 80), timeout=5) as wire:
        return wire.recv(100)
