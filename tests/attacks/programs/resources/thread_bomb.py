# Starts 400 threads, which count as processes.
# evidence: processes
# bare: works

import threading
import time

threading.stack_size(65536)
for _ in range(400):
    try:
        threading.Thread(target=time.sleep, args=(2,), daemon=True).start()
    except RuntimeError:
        break
time.sleep(1)
