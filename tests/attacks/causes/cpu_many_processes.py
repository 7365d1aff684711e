# cause: cpu
import os

for _ in range(3):
    os.fork()
while True:
    pass
