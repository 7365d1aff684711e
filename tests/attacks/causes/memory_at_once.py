# cause: memory
held = bytearray(1 << 40)
