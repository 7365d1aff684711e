# cause: ok
try:
    held = bytearray(1 << 40)
except MemoryError:
    print("coped")
