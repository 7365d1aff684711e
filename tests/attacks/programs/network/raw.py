# Opens raw sockets, which can forge packets and read those of others.
# evidence: word
# bare: refused

import contextlib
import socket

from hostile import reached

with contextlib.suppress(OSError):
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    reached()
socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
reached()
