"""Keep results in files that are named by what they depend on."""

from __future__ import annotations

import os
from pathlib import Path


class KeptFiles:
    """At most `most` files of a folder, each named by its key. The oldest ones are removed."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most = folder, most

    def find(self, key: str) -> bytes | None:
        try:
            return self._get_path(key).read_bytes()
        except OSError:
            return None

    def save(self, key: str, text: str) -> None:
        """Keep all of the text, or nothing."""
        path = self._get_path(key)
        self._folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(text, encoding="utf-8")
        part.replace(path)
        files = sorted(self._folder.glob("*.json"), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in files[self._most :]:
            file.unlink(missing_ok=True)

    def _get_path(self, key: str) -> Path:
        return self._folder / f"{key}.json"
