# Confines the agent to one processor.
# evidence: harm
# bare: works

import os

os.sched_setaffinity(int(os.environ["ATTACK_AGENT"]), {0})
