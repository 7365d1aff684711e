# Prints 150 MB.
# evidence: output
# bare: works

import sys

for _ in range(150):
    sys.stdout.write("x" * (1 << 20) + "\n")
