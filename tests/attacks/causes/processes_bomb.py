# cause: processes
# limits: memory=1073741824
import os

while True:
    os.fork()
