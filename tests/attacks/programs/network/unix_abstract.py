# Connects to an abstract socket, which has a name but no file.
# evidence: contact
# bare: works

import os
import socket

socket.socket(socket.AF_UNIX).connect("\0" + os.environ["ATTACK_ABSTRACT"])
