# Keeps swapping the result with a link while the host reads it.
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
