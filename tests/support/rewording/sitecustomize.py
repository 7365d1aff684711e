"""Found by every Python that starts with this folder on PYTHONPATH: words what redstart says to people otherwise."""

import rewording

rewording.install()
