# cause: file_size
import signal
from pathlib import Path

signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
with Path("big").open("wb") as big:
    big.write(bytes(20 << 20))
