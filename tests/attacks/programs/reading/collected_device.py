# Leaves an endless device where the host collects a result.
# evidence: leave
# bare: refused

import os
import stat

os.mknod(os.path.join(os.environ["ATTACK_OUT"], "result"), 0o666 | stat.S_IFCHR, os.makedev(1, 5))
