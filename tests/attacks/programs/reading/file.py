# Reads a file of the user's at its path.
# evidence: read
# bare: works

import os
from pathlib import Path

print(Path(os.environ["ATTACK_CANARY"]).read_text())
