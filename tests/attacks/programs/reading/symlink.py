# Reads through a link in the workspace.
# evidence: read
# bare: works

import os
from pathlib import Path

Path("link").symlink_to(os.environ["ATTACK_CANARY"])
print(Path("link").read_text())
