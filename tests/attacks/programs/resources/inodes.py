# Creates 60,000 empty files in the workspace.
# evidence: inodes
# bare: works

import os
import time

try:
    for number in range(60_000):
        if number % 1000 == 0:
            os.mkdir(f"d{number}")
        os.close(os.open(f"d{number // 1000 * 1000}/f{number}", os.O_CREAT | os.O_WRONLY))
finally:
    time.sleep(1)
