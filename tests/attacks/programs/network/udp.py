# Sends a datagram.
# evidence: contact
# bare: works

import os
import socket

socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", int(os.environ["ATTACK_UDP"])))
