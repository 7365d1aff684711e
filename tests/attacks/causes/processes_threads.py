# cause: processes
import threading
import time

for _ in range(200):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
