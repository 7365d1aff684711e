# Sets the clock of the host to the time that it already shows.
# evidence: word
# bare: refused

import time

from hostile import reached

time.clock_settime(time.CLOCK_REALTIME, time.time())
reached()
