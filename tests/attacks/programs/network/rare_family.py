# Opens sockets of rare kinds that have had kernel vulnerabilities.
# evidence: word
# bare: kernel

import contextlib
import socket

from hostile import reached

opened = 0
for family in (socket.AF_ALG, socket.AF_TIPC, socket.AF_RDS, socket.AF_CAN, 44):
    with contextlib.suppress(OSError):
        socket.socket(family, socket.SOCK_SEQPACKET if family == socket.AF_ALG else socket.SOCK_RAW)
        opened += 1
if opened:
    reached()
