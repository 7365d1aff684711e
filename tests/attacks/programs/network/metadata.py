# Connects to the address at which clouds give out credentials. It asks for nothing.
# evidence: word
# bare: untried

import socket

from hostile import reached

socket.create_connection(("169.254.169.254", 80), 2).close()
reached()
