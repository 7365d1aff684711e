# Lists the host's network interfaces.
# evidence: interface
# bare: works

import socket

print([name for _, name in socket.if_nameindex()])
