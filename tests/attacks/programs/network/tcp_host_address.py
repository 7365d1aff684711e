# Connects to the host by its address in the network.
# evidence: contact
# bare: works

import os
import socket

socket.create_connection((os.environ["ATTACK_ADDRESS"], int(os.environ["ATTACK_TCP4"])), 2).sendall(b"x")
