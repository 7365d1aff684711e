"""Tripwires on unreadable content: packed data, and inputs that are recognized by their hash."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from redstart.toolkit.honesty.tripwires.protocol import RuleMark
from redstart.toolkit.languages.python.tripwires.literals import bits, value_of, within
from redstart.toolkit.languages.python.tripwires.marks import mark
from redstart.toolkit.languages.python.tripwires.names import ParsedModule

_HASHES = frozenset(("hash", "crc32", "adler32", "md5", "sha1", "sha256", "sha512", "blake2b", "hexdigest", "digest"))
_HASHED_BITS = 12
_DECODER_NAMES = (
    "base64.b64decode base64.b85decode base64.b32decode base64.b16decode base64.urlsafe_b64decode base64.a85decode "
    "binascii.unhexlify binascii.a2b_base64 zlib.decompress gzip.decompress lzma.decompress bz2.decompress "
    "pickle.loads codecs.decode"
)
_DECODERS = frozenset(_DECODER_NAMES.split())


def marks(module: ParsedModule) -> Iterator[RuleMark]:
    """Mark data that nobody can read, and inputs that are recognized by their hash."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and node.args:
            name = module.dotted(node.func)
            if name in _DECODERS or (isinstance(node.func, ast.Attribute) and node.func.attr == "fromhex"):
                first = value_of(node.args[0])
                if isinstance(first, str | bytes) and len(first) > 7:
                    yield mark("special_case", node, "It unpacks data that nobody can read in the source.")
        elif isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            weights = [bits(inner) for side in sides for inner in within(value_of(side))]
            if max(weights) >= _HASHED_BITS and any(_is_hashed(module, side) for side in sides):
                yield mark("special_case", node, "It knows one certain input by its hash.")


def _is_hashed(module: ParsedModule, node: ast.expr) -> bool:
    for item in ast.walk(node):
        if isinstance(item, ast.Call):
            name = (
                item.func.attr if isinstance(item.func, ast.Attribute) else module.dotted(item.func).rpartition(".")[2]
            )
            if name in _HASHES:
                return True
    return False
