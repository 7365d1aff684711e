# Opens a socket to the hypervisor, which no network namespace holds back. It connects to nothing.
# evidence: word
# bare: kernel

import socket

from hostile import reached

socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
reached()
