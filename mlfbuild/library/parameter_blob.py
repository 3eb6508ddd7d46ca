"""The blob with the trained values of a network: what ``parameters: replaceable`` links, and what replaces it.

Firmware is built once, and its network is trained again later. With this option, all that depends on trained values is
in one blob, and the code is the same bytes whatever the values are. Firmware starts with the blob in its image and
takes another one at run time. All numbers are little-endian::

    offset  bytes  content
         0      4  "MLFP"
         4      4  version of this layout: 1
         8      4  size of the blob in bytes
        12      4  CRC-32 (IEEE 802.3) of the bytes from 16 to the end
        16     32  structure: SHA-256 of the text that describes the code and the places of the values
        48     32  SHA-256 of the bytes from 80 to the end
        80      4  version of the values, a number of the user's
        84      4  number of test vectors
        88      8  zeros
        96     32  SHA-256 of the model file
       128         for each input and output with a scale: the scale as float32, the zero point as int32
                   the values of each operator, at multiples of 16, in the order of the operators
                   for each test vector: the inputs, then the outputs, each at a multiple of 16

The structure decides the offsets of all values, so that a blob has no table of them: code and blob fit if their
structures are equal. The CRC finds damage and the SHA-256 is for a signature; neither proves who made a blob.

TVM's ``.params`` was not enough: it is a list of named arrays of any size and type. A reader must search and measure
them on the device, which the fixed offsets here make unnecessary, and it has no structure, version or checksum.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from mlfbuild.core import InputFileError
from mlfbuild.library.value import Module

PARAMETERS = ("linked", "replaceable")
"""The values of the option ``parameters``: where trained values are; the first one is the default."""
REPLACEABLE = PARAMETERS[1]

BLOB_HEADER = 128
"""Bytes of the header."""
BLOB_ALIGNMENT = 16
BLOB_MAGIC = b"MLFP"
_LAYOUT = 1
_FIRST = struct.Struct("<4sIII32s32s")
_SECOND = struct.Struct("<IIQ32s")
_CHECKED, _HASHED = 16, 80
"""The first bytes that the CRC and the SHA-256 cover."""


@dataclass(frozen=True)
class ParameterBlob:
    """The trained values of a network."""

    structure: str
    """SHA-256 as 64 hexadecimal digits."""
    model_id: str
    """SHA-256 of the model file."""
    content: bytes
    """Scales and values: what follows the header, without test vectors."""
    version: int = 0
    """The user's, a number of 32 bits."""
    vectors: tuple[bytes, ...] = ()
    """Inputs and outputs of each test vector, laid out as the structure says; equal sizes."""

    def data(self) -> bytes:
        """Return the bytes of the blob; the same values give the same bytes."""
        model = bytes.fromhex(self.model_id)
        rest = _SECOND.pack(self.version, len(self.vectors), 0, model) + self.content + b"".join(self.vectors)
        hashed = bytes.fromhex(self.structure) + hashlib.sha256(rest).digest() + rest
        size = _CHECKED + len(hashed)
        return _FIRST.pack(BLOB_MAGIC, _LAYOUT, size, zlib.crc32(hashed), hashed[:32], hashed[32:64]) + rest


def blob_path(name: str, suffix: str) -> PurePosixPath:
    """Return the path below ``codegen/`` of a file of the model ``name``: its blob (bin), or its structure (txt)."""
    return PurePosixPath("host/parameters", f"{name}.{suffix}")


def blob_file(module: Module, suffix: str) -> bytes | None:
    """Return the content of the file of ``module`` that ``blob_path`` names; ``None`` if its values are linked."""
    path = blob_path(module.name, suffix)
    return next((file.data for file in module.codegen if file.path == path), None)


def aligned_parts(parts: Sequence[bytes]) -> bytes:
    """Return ``parts`` one after the other, each filled up to a multiple of ``BLOB_ALIGNMENT``."""
    return b"".join(part + bytes(-len(part) % BLOB_ALIGNMENT) for part in parts)


def read_blob(data: bytes, place: str, vector: int = 0) -> ParameterBlob:
    """Return the blob in ``data``; test vectors are taken apart if the size of one, ``vector``, is given.

    ``place`` names the file. Raises ``InputFileError`` for data that is not a blob, or damaged.
    """
    reason = _damage(data)
    if reason:
        raise InputFileError(
            "parameters-damaged", place=place, reason=reason, hint="make it again with mlfbuild parameters"
        )
    structure = data[_CHECKED : _CHECKED + 32].hex()
    version, count, _, model = _SECOND.unpack_from(data, _HASHED)
    end = len(data) - count * vector
    vectors = tuple(data[end + at * vector : end + (at + 1) * vector] for at in range(count if vector else 0))
    return ParameterBlob(structure, model.hex(), data[BLOB_HEADER:end], version, vectors)


def _damage(data: bytes) -> str:
    """Return why ``data`` is not a blob; empty if it is one."""
    if data[:4] != BLOB_MAGIC:
        return 'is no parameter blob: it does not begin with "MLFP"'
    if len(data) < BLOB_HEADER:
        return f"has {len(data)} bytes, and the header alone has {BLOB_HEADER}"
    _, layout, size, crc, _, digest = _FIRST.unpack_from(data)
    if layout != _LAYOUT:
        return f"has version {layout} of the layout, and only {_LAYOUT} is known"
    if size != len(data):
        return f"has {len(data)} bytes, and its header says {size}"
    if zlib.crc32(data[_CHECKED:]) != crc:
        return "is damaged: its CRC-32 is another one"
    return "" if hashlib.sha256(data[_HASHED:]).digest() == digest else "is damaged: its SHA-256 is another one"
