"""Declare the keys of a file once, for its reader, its JSON Schema and its reference page.

``declaration`` has the base class, ``checks`` the rules of single values, ``units`` the values with a unit, ``plain``
the reader of mlfbuild's own tables, which needs no pydantic. A room declares keys where it uses their values, so that
the reader of project files and the code that applies a key share one class: ``library.keys.Placement`` is both the
section ``placement`` of ``mlfbuild.yml`` and an argument of the compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.core.keys.checks import (
        EXACT, MAPPING, NOT_EMPTY, TEXT, Convert, PathText, ProjectPath, Rule, TextOr, named, not_blank, one_of,
    )
    from mlfbuild.core.keys.declaration import DERIVED, OTHERS, OTHERS_MARK, Keys, spelled
    from mlfbuild.core.keys.plain import read_keys
    from mlfbuild.core.keys.units import (
        FREQUENCY_TEXT, Count, Duration, Frequency, Percent, Size, duration_text, frequency_text, latency_text,
        parse_count, parse_duration, parse_frequency, parse_size, rounded_size, size_text,
    )
else:
    __getattr__ = lazy_attributes(__name__)
