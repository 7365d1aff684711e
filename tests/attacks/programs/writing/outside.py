# Creates a file in a folder of the host that everyone may write to.
# evidence: write
# bare: works

import os
from pathlib import Path

Path(os.environ["ATTACK_OUTSIDE"], "was-here").write_text("x")
