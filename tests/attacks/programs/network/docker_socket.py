# Asks the container daemon to start something on the host.
# evidence: contact
# bare: works

import contextlib
import os
import socket

for path in (os.environ["ATTACK_DOCKER"], "/run/docker.sock", "/var/run/docker.sock"):
    with contextlib.suppress(OSError):
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        client.sendall(b"GET /version HTTP/1.0\r\n\r\n")
