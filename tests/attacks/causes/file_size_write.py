# cause: file_size
from pathlib import Path

with Path("big").open("wb") as big:
    big.write(bytes(20 << 20))
