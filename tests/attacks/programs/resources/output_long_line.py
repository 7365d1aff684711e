# Prints one line of 1 GB (200 MB without a sandbox, to spare the machine).
# evidence: output
# bare: works

import os
import sys

for _ in range(200 if os.environ["ATTACK_BARE"] else 1000):
    sys.stdout.write("x" * (1 << 20))
