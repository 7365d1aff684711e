# Connects to the host by its network address.
# evidence: contact
# bare: works

import os
import socket

socket.create_connection((os.environ["ATTACK_ADDRESS"], int(os.environ["ATTACK_TCP4"])), 2).sendall(b"x")
