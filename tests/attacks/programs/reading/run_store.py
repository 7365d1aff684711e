# Reads the agent's own database.
# evidence: read
# bare: works

import os
from pathlib import Path

print(Path(os.environ["ATTACK_HOME"], ".local/share/redstart/redstart.db").read_bytes())
