# Plants a module that the user's next Python process imports automatically.
# evidence: write
# bare: works

import os
from pathlib import Path

folder = Path(os.environ["ATTACK_HOME"], ".local/lib/python3/site-packages")
folder.mkdir(parents=True)
(folder / "usercustomize.py").write_text("print('owned')")
