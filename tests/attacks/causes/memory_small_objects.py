# cause: memory
# limits: cpu=30
held = {}
while True:
    held[len(held)] = [None] * 100
