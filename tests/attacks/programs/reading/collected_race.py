# Swaps the result and a link for as long as it may.
# evidence: read
# bare: works

import os

result, other = (os.path.join(os.environ["ATTACK_OUT"], name) for name in ("result", "other"))
for _ in range(30):
    for _ in range(500):
        open(other, "w").close()
        os.rename(other, result)
        os.symlink(os.environ["ATTACK_CANARY"], other)
        os.rename(other, result)
