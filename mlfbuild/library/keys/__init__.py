"""Keys of a model that the code of a library depends on: linker sections, names in C, facts.

A project file has them as ``placement``, ``interface`` and ``extensions``. Compilers and the code that runs a library
take the same values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.library.keys.extension_facts import FACT_NAME, fact_name_problem, fact_problem
    from mlfbuild.library.keys.interface_names import (
        ConstantInput, Dimension, InterfaceNames, PortNames, SignatureName, TensorName, port_problem,
    )
    from mlfbuild.library.keys.memories import ArenaMemory, FastWeights
    from mlfbuild.library.keys.npu import (
        DEDICATED_SRAM, MEMORY_MODES, NPU_DEVICE, NPU_MACS, SHARED_SRAM, SRAM_ONLY, Npu, npu_problems,
    )
    from mlfbuild.library.keys.placement import (
        CODE, CONSTANT_CLASSES, MEMORY_CLASSES, PARAMS, SECTION, SECTION_NAME, Placement, PlacementKeys, SectionContent,
        content_of, is_collected, section_problem, shared_section, symbol_stem,
    )
else:
    __getattr__ = lazy_attributes(__name__)
