# cause: cpu
while True:
    pass
