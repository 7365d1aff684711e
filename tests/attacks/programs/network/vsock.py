# Opens a socket to the hypervisor, which network namespaces do not block. It does not connect.
# evidence: word
# bare: kernel

import socket

from hostile import reached

socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
reached()
