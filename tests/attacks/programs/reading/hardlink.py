# Gives the file a second name in the workspace.
# evidence: read
# bare: kernel

import os
from pathlib import Path

os.link(os.environ["ATTACK_CANARY"], os.environ["ATTACK_HOME"] + "/projects/shop/second")
print(Path(os.environ["ATTACK_REPO"], "second").read_text())
