# cause: timeout
# limits: wall=2
import socket

with socket.create_server(("127.0.0.1", 0)) as server:
    server.accept()
