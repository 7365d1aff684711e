# cause: timeout
# limits: wall=2
import signal
import time

for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
    signal.signal(number, signal.SIG_IGN)
while True:
    time.sleep(1)
