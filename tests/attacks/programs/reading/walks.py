# Looks for the file in every mount, and in every folder on the file's path.
# evidence: read
# bare: works

import os
from pathlib import Path

wanted = Path(os.environ["ATTACK_CANARY"])
roots = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
for root in roots:
    for parts in range(1, len(wanted.parts)):
        try:
            print(Path(root, *wanted.parts[parts:]).read_text())
        except OSError:
            continue
