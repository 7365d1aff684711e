# Connects over IPv6.
# evidence: contact
# bare: works

import os
import socket

socket.create_connection(("::1", int(os.environ["ATTACK_TCP6"])), 2).sendall(b"x")
