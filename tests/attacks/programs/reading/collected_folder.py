# Leaves a linked folder where a result is read back.
# evidence: read
# bare: works

import os

os.symlink(os.path.dirname(os.environ["ATTACK_CANARY"]), os.path.join(os.environ["ATTACK_OUT"], "sub"))
