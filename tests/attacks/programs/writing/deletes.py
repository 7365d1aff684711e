# Deletes one of the user's files.
# evidence: write
# bare: works

import os

os.unlink(os.environ["ATTACK_CANARY"])
