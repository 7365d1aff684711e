# cause: failed
try:
    held = bytearray(1 << 40)
except MemoryError:
    print("coped")
raise SystemExit("something else is wrong")
