# Computes forever in six processes.
# evidence: time
# bare: works

import os

for _ in range(5):
    if os.fork() == 0:
        break
while True:
    pass
