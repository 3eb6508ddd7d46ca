"""Kinds of files of generated code by suffix, and the largest file that is searched."""

from __future__ import annotations

CXX_SUFFIXES = frozenset({".cc", ".cpp"})
SOURCE_SUFFIXES = CXX_SUFFIXES | {".c"}
OBJECT_SUFFIXES = frozenset({".o"})
# .inc: text that is included in the middle of a source, such as a table.
HEADER_SUFFIXES = frozenset({".h", ".hpp", ".inc"})
TEXT_SUFFIXES = SOURCE_SUFFIXES | HEADER_SUFFIXES
LINKED_SUFFIXES = SOURCE_SUFFIXES | OBJECT_SUFFIXES
"""Files that become part of an image; headers are only included."""

MAX_TEXT = 16 * 1024 * 1024
"""In bytes; the text of larger files is not searched. Without weights, TVM's files are a thousandth of this."""
