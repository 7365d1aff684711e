# Allocates 1 GB in one process.
# evidence: memory
# bare: works

import time

taken = [bytearray(b"x" * (32 << 20)) for _ in range(32)]
time.sleep(1)
print(len(taken))
