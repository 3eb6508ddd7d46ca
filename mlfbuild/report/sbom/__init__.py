"""Software bill of materials (SBOM): components of a project's firmware and their relations, as CycloneDX or SPDX.

``sbom_document`` collects components, which ``components`` creates for models, code, libraries and images;
``cyclonedx``, ``spdx`` and ``bom_files`` write the result. Notes name missing information and the command that
provides it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.report.sbom.bom import Bom, Component, How, Kind
    from mlfbuild.report.sbom.bom_files import as_json, as_text, check_outputs, document, output_forms, write_document
    from mlfbuild.report.sbom.components import (
        add_board, add_images, archive_component, code_component, images_of, kernels_component, mlfbuild_tool,
        model_component, parameters_component, runtime_component, tvm_runtime_component, tvm_tool, vela_tool,
    )
    from mlfbuild.report.sbom.licenses import spdx_expression
    from mlfbuild.report.sbom.requirements import TreeContents, add_declared, add_dependencies, read_tree
    from mlfbuild.report.sbom.sbom_document import BUILD, REPAIR, Bill, Code
else:
    __getattr__ = lazy_attributes(__name__)
