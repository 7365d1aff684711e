# Leaves a pipe where the host collects a result, so that the host waits forever.
# evidence: time
# bare: works

import os

os.mkfifo(os.path.join(os.environ["ATTACK_OUT"], "result"))
