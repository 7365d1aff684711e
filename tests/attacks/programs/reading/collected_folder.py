# Leaves a link to a folder where the host collects a result.
# evidence: read
# bare: works

import os

os.symlink(os.path.dirname(os.environ["ATTACK_CANARY"]), os.path.join(os.environ["ATTACK_OUT"], "sub"))
