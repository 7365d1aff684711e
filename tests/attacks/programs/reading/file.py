# Reads one of the user's files by its path.
# evidence: read
# bare: works

import os
from pathlib import Path

print(Path(os.environ["ATTACK_CANARY"]).read_text())
