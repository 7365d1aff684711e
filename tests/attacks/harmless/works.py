# Computes in one process for as long as an attack takes, as a test suite does.
# evidence: time
# bare: untried

import time

over = time.monotonic() + 2
while time.monotonic() < over:
    pass
