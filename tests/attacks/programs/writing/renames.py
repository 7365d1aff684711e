# Moves one of the user's folders away.
# evidence: write
# bare: works

import os

os.rename(os.environ["ATTACK_HOME"] + "/.ssh", os.environ["ATTACK_HOME"] + "/moved")
