# Connects to a port of the host's loopback.
# evidence: contact
# bare: works

import os
import socket

socket.create_connection(("127.0.0.1", int(os.environ["ATTACK_TCP4"])), 2).sendall(b"x")
