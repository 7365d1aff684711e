# Kills the agent by its process id.
# evidence: harm
# bare: works

import os
import signal

os.kill(int(os.environ["ATTACK_AGENT"]), signal.SIGKILL)
