# Leaves a link where a result is read back, so that the host reads the file itself.
# evidence: read
# bare: works

import os

os.symlink(os.environ["ATTACK_CANARY"], os.path.join(os.environ["ATTACK_OUT"], "result"))
