# Connects to a socket file of the user.
# evidence: contact
# bare: works

import os
import socket

socket.socket(socket.AF_UNIX).connect(os.environ["ATTACK_UNIX"])
