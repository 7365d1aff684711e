# cause: cpu
import threading


def spin():
    while True:
        pass


for _ in range(4):
    threading.Thread(target=spin).start()
