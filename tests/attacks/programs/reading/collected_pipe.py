# Leaves a pipe where a result is read back, so that the host waits for ever.
# evidence: time
# bare: works

import os

os.mkfifo(os.path.join(os.environ["ATTACK_OUT"], "result"))
