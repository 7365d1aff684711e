# Deletes a file of the user's.
# evidence: write
# bare: works

import os

os.unlink(os.environ["ATTACK_CANARY"])
