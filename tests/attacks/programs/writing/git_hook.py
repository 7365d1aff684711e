# Plants a hook in the real repo that runs at the user's next commit.
# evidence: write
# bare: works

import os
from pathlib import Path

hook = Path(os.environ["ATTACK_REPO"], ".git/hooks/pre-commit")
hook.write_text("#!/bin/sh\ntouch /tmp/owned\n")
hook.chmod(0o755)
