"""Which file of the static folder an address means. Paths are POSIX paths, no file is touched."""

from posixpath import join, normpath, splitext

TYPES = {".html": "text/html", ".css": "text/css", ".gz": "application/gzip"}


def resolve(root, address):
    """The path under `root` for an address such as /css/site.css; None where it leads out of `root`."""
    path = normpath(join(root, address.lstrip("/")))
    if not path.startswith(root):
        return None
    return path


def content_type(path):
    """By the last suffix; unknown ones are plain bytes."""
    return TYPES.get(splitext(path)[1].lower(), "application/octet-stream")


def is_hidden(path):
    """Whether a part of the path begins with a dot; such files are never served."""
    return any(part.startswith(".") for part in path.split("/"))
