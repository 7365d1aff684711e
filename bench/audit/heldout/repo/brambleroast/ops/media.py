"""Product pictures."""
import os
import re
from pathlib import Path

MEDIA = Path("/srv/brambleroast/media")
SAFE_NAME = re.compile(r"^[a-z0-9][a-z0-9-]*\.(jpe?g|png|webp)$")


def is_safe(name):
    return SAFE_NAME.fullmatch(name) is not None


def store(upload):
    """Save an upload under its own name and return the path."""
    path = MEDIA / os.path.basename(upload.filename)
    upload.save(path)
    return path


def thumbnail(filename, width=320):
    """Scale an uploaded picture; `filename` is the name it was uploaded by."""
    target = MEDIA / "thumbs"
    target.mkdir(exist_ok=True)
    status = os.system("convert " + str(MEDIA / filename) + f" -resize {width} " + str(target / filename))
    return status == 0


def rename(old, new):
    if not (is_safe(old) and is_safe(new)):
        raise ValueError("unsafe file name")
    os.replace(MEDIA / old, MEDIA / new)


def listing():
    return sorted(path.name for path in MEDIA.iterdir() if is_safe(path.name))
