# Connects to the address where clouds hand out credentials. It requests nothing.
# evidence: word
# bare: untried

import socket

from hostile import reached

socket.create_connection(("169.254.169.254", 80), 2).close()
reached()
