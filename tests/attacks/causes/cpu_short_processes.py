# cause: cpu
import os

while True:
    child = os.fork()
    if child == 0:
        sum(range(3_000_000))
        os._exit(0)
    os.waitpid(child, 0)
