# cause: memory
held = {}
while True:
    held[len(held)] = [None] * 100
