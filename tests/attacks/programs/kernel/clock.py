# Sets the clock of the host, to what it is.
# evidence: word
# bare: refused

import time

from hostile import reached

time.clock_settime(time.CLOCK_REALTIME, time.time())
reached()
