"""Loaded by every Python with this directory on PYTHONPATH: rewords redstart's texts for people."""

import rewording

rewording.install()
