# Leaves a link where the host collects a result, so that the host itself reads the file.
# evidence: read
# bare: works

import os

os.symlink(os.environ["ATTACK_CANARY"], os.path.join(os.environ["ATTACK_OUT"], "result"))
