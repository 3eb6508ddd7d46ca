"""Kinds of files of generated code, told by their suffixes, and how much of a file is looked into."""

from __future__ import annotations

CXX_SUFFIXES = frozenset({".cc", ".cpp"})
SOURCE_SUFFIXES = CXX_SUFFIXES | {".c"}
OBJECT_SUFFIXES = frozenset({".o"})
HEADER_SUFFIXES = frozenset({".h", ".hpp", ".inc"})
TEXT_SUFFIXES = SOURCE_SUFFIXES | HEADER_SUFFIXES
LINKED_SUFFIXES = SOURCE_SUFFIXES | OBJECT_SUFFIXES
"""What becomes part of an image; headers are only read."""

MAX_TEXT = 16 * 1024 * 1024
"""Bytes; a larger file is not searched for what its text says. TVM's are a thousandth of it, weights aside."""
