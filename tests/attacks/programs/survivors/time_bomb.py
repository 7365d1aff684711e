# Ends successfully at once, and connects to the host half a second later.
# evidence: contact
# bare: works

import os
import socket
import time

if os.fork() == 0:
    os.setsid()
    time.sleep(0.5)
    socket.create_connection(("127.0.0.1", int(os.environ["ATTACK_TCP4"])), 2).close()
