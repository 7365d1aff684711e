# cause: timeout
# limits: wall=2
import time

time.sleep(600)
