# cause: memory
import os
import time

for _ in range(3):
    os.fork()
held = bytearray(os.urandom(1 << 20)) * 60
time.sleep(60)
