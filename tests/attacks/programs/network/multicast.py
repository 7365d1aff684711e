# Sends to every machine of the network at once.
# evidence: contact
# bare: kernel

import os
import socket

sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
sender.sendto(b"x", ("224.0.0.251", int(os.environ["ATTACK_UDP"])))
