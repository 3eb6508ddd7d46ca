"""Faults of a link that the linker does not report: where it put the data of models, and what that collides with.

``symbols`` finds heap and stack by the symbols of linker scripts, and ``checks`` compares them with the sections of the
models, and the symbols of the linked files with each other. A fault is a ``Diagnostic``; its code is stable.

A script of your own or of a vendor may name sections that it does not expect, such as ``.bss.noinit.tvm``, or not: GNU
ld then places them without a warning, perhaps where the heap begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.report.link.checks import (
        LinkFaults, link_faults, link_faults_in, link_faults_json, link_faults_text, models_without_code,
    )
    from mlfbuild.report.link.record import check_link
else:
    __getattr__ = lazy_attributes(__name__)
