# Leaves a sparse file of 80 MB for the host to collect.
# evidence: output
# bare: works

import os

with open(os.path.join(os.environ["ATTACK_OUT"], "result"), "wb") as file:
    try:
        file.truncate(80 << 20)
    except OSError:
        file.truncate(12 << 20)
