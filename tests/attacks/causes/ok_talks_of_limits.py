# cause: ok
print("MemoryError")
print("OSError: [Errno 28] No space left on device")
print("BlockingIOError: [Errno 11] Resource temporarily unavailable")
