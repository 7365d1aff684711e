# Rests for as long as an attack takes: what a neighbour's pace is compared with.
# evidence: time
# bare: untried

import time

time.sleep(2)
