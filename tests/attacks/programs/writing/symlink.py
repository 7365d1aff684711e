# Writes through a link to a folder.
# evidence: write
# bare: works

import os
from pathlib import Path

Path("linked").symlink_to(os.environ["ATTACK_OUTSIDE"])
Path("linked/was-here").write_text("x")
