# cause: memory
import mmap
import time

shared = mmap.mmap(-1, 400 << 20)
for place in range(0, 400 << 20, 4096):
    shared[place] = 1
time.sleep(60)
