# Allocates 200 MB in each of six processes, so that no single process is large.
# evidence: memory
# bare: works

import os
import time

for _ in range(6):
    if os.fork() == 0:
        taken = [bytearray(b"x" * (20 << 20)) for _ in range(10)]
        time.sleep(1.5)
        os._exit(len(taken) * 0)
for _ in range(6):
    os.wait()
