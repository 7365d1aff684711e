# Gives the agent the lowest priority.
# evidence: harm
# bare: works

import os

os.setpriority(os.PRIO_PROCESS, int(os.environ["ATTACK_AGENT"]), 15)
