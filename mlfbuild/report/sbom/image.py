"""The compilers that are recorded in a linked image."""

from __future__ import annotations

import io
import re

# Entries that are read: an image has one per compiler, and an untrusted one may have millions.
_COMMENTS = 20
_COMPILER = re.compile(r"(GCC): \([^()]*\) (\d+(?:\.\d+)*)|\b(clang|LLD) (?:version )?(\d+(?:\.\d+)*)", re.IGNORECASE)


def compilers_of(data: bytes) -> list[tuple[str, str]]:
    """Return (name, version) of the compilers and linkers in section ``.comment`` of the ELF image ``data``, sorted.

    Empty for a damaged file, or without the section. GCC: ``GCC: (15:12.2.rel1-1) 12.2.1 20221205``; clang: ``Debian
    clang version 16.0.6``; its linker: ``Linker: Debian LLD 16.0.6``.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        section = ELFFile(io.BytesIO(data)).get_section_by_name(".comment")
        comment = section.data() if section is not None else b""
    except (ELFError, ValueError, LookupError, TypeError, AttributeError, OverflowError, AssertionError):
        return []
    found = (_COMPILER.search(text.decode(errors="replace")) for text in comment.split(b"\0")[:_COMMENTS])
    return sorted({((match[1] or match[3]).lower(), match[2] or match[4]) for match in found if match})
