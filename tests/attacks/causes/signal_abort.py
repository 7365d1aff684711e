# cause: signal
import os

os.abort()
