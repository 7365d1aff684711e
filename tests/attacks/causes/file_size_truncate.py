# cause: file_size
import os
from pathlib import Path

with Path("big").open("wb") as big:
    os.truncate(big.fileno(), 20 << 20)
