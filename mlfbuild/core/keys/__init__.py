"""Declare the keys of a file once, for its reader, its JSON Schema and its reference page.

``declaration`` has the base class, ``checks`` the rules of single values, ``units`` the values with a unit, ``plain``
the reader of mlfbuild's own tables, which needs no pydantic. A room
declares keys where it uses their values, so that the reader of project files and the code that applies a key share one
class: ``library.keys.Placement`` is both the section ``placement`` of ``mlfbuild.yml`` and an argument of the compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.core.keys.checks import (
        EXACT as EXACT,
        MAPPING as MAPPING,
        NOT_EMPTY as NOT_EMPTY,
        TEXT as TEXT,
        Convert as Convert,
        Late as Late,
        PathText as PathText,
        ProjectPath as ProjectPath,
        Rule as Rule,
        TextOr as TextOr,
        named as named,
        not_blank as not_blank,
        one_of as one_of,
    )
    from mlfbuild.core.keys.declaration import DERIVED as DERIVED, Keys as Keys, spelled as spelled
    from mlfbuild.core.keys.plain import read_keys as read_keys
    from mlfbuild.core.keys.units import (
        FREQUENCY_TEXT as FREQUENCY_TEXT,
        Count as Count,
        Duration as Duration,
        Frequency as Frequency,
        Percent as Percent,
        Size as Size,
        duration_text as duration_text,
        frequency_text as frequency_text,
        parse_frequency as parse_frequency,
        parse_size as parse_size,
        size_text as size_text,
    )
else:
    __getattr__ = lazy_attributes(__name__)
