# Writes to a second name of a file of the host.
# evidence: write
# bare: kernel

import os
from pathlib import Path

canary = Path(os.environ["ATTACK_CANARY"])
second = Path(os.environ["ATTACK_OUTSIDE"], "second")
os.link(canary, second)
second.write_text("changed")
