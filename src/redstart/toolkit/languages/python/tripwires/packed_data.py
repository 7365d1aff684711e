"""Tripwires on unreadable content: packed data, and inputs that are recognized by their hash."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from redstart.toolkit.honesty.tripwires.protocol import RuleMark
from redstart.toolkit.languages.python.tripwires.literals import estimate_bits, get_literal, walk_literals
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


def find_marks(module: ParsedModule) -> Iterator[RuleMark]:
    """Mark data that nobody can read, and inputs that are recognized by their hash."""
    for node in module.nodes:
        if isinstance(node, ast.Call) and node.args:
            name = module.get_full_name(node.func)
            if name in _DECODERS or (isinstance(node.func, ast.Attribute) and node.func.attr == "fromhex"):
                argument = get_literal(node.args[0])
                if isinstance(argument, str | bytes) and len(argument) > 7:
                    yield mark("special_case", node, "It unpacks data that nobody can read in the source.")
        elif isinstance(node, ast.Compare):
            operands = (node.left, *node.comparators)
            weights = [
                estimate_bits(literal) for operand in operands for literal in walk_literals(get_literal(operand))
            ]
            if max(weights) >= _HASHED_BITS and any(_is_hashed(module, operand) for operand in operands):
                yield mark("special_case", node, "It knows one certain input by its hash.")


def _is_hashed(module: ParsedModule, node: ast.expr) -> bool:
    for item in ast.walk(node):
        if isinstance(item, ast.Call):
            name = (
                item.func.attr
                if isinstance(item.func, ast.Attribute)
                else module.get_full_name(item.func).rpartition(".")[2]
            )
            if name in _HASHES:
                return True
    return False
