"""The held-out half of the corpora: damage, cheats and hostile patches."""

from __future__ import annotations
