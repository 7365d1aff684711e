# Connects to a socket that has a name and no file.
# evidence: contact
# bare: works

import os
import socket

socket.socket(socket.AF_UNIX).connect("\0" + os.environ["ATTACK_ABSTRACT"])
