# Writes through the root folder of the agent's process.
# evidence: write
# bare: works

import os
from pathlib import Path

Path(f"/proc/{os.environ['ATTACK_AGENT']}/root{os.environ['ATTACK_OUTSIDE']}/was-here").write_text("x")
