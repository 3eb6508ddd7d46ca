"""Keys of a model that the code of a library depends on: linker sections, names in C, facts.

A project file has them as ``placement``, ``interface`` and ``extensions``. Compilers and the code that runs a library
take the same values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.library.keys.extension_facts import (
        FACT_NAME as FACT_NAME,
        fact_name_problem as fact_name_problem,
        fact_problem as fact_problem,
    )
    from mlfbuild.library.keys.interface_names import (
        ConstantInput as ConstantInput,
        Dimension as Dimension,
        InterfaceNames as InterfaceNames,
        PortNames as PortNames,
        SignatureName as SignatureName,
        TensorName as TensorName,
        port_problem as port_problem,
    )
    from mlfbuild.library.keys.placement import (
        CODE as CODE,
        CONSTANT_CLASSES as CONSTANT_CLASSES,
        MEMORY_CLASSES as MEMORY_CLASSES,
        PARAMS as PARAMS,
        Placement as Placement,
        PlacementKeys as PlacementKeys,
        content_of as content_of,
    )
    from mlfbuild.library.keys.section_names import (
        SECTION as SECTION,
        SECTION_NAME as SECTION_NAME,
        SectionContent as SectionContent,
        is_collected as is_collected,
        section_problem as section_problem,
        symbol_stem as symbol_stem,
    )
else:
    __getattr__ = lazy_attributes(__name__)
