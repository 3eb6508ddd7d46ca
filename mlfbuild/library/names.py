"""Tensor names as TVM writes them in C."""

from __future__ import annotations

import re


def sanitize_name(name: str) -> str:
    """Return ``name`` with ``_`` for each byte that is no ASCII letter or digit (TVM's ``SanitizeName``)."""
    return re.sub(rb"[^0-9A-Za-z]", b"_", name.encode(errors="surrogatepass")).decode()
