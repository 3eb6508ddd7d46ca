"""Software bill of materials (SBOM): components of a project's firmware and their relations, as CycloneDX or SPDX.

``sbom_document`` collects components, which ``components`` creates for models, code, libraries and images;
``cyclonedx``, ``spdx`` and ``table`` write the result. Notes name missing information and the command that provides it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.report.sbom.bom import Bom as Bom, Component as Component, How as How, Kind as Kind
    from mlfbuild.report.sbom.bom_files import (
        as_json as as_json,
        as_text as as_text,
        check_outputs as check_outputs,
        document as document,
        output_forms as output_forms,
        write_document as write_document,
    )
    from mlfbuild.report.sbom.code import BUILD as BUILD, REPAIR as REPAIR, Code as Code
    from mlfbuild.report.sbom.components import (
        archive_component as archive_component,
        code_component as code_component,
        kernels_component as kernels_component,
        mlfbuild_tool as mlfbuild_tool,
        model_component as model_component,
        runtime_component as runtime_component,
        tvm_runtime_component as tvm_runtime_component,
        tvm_tool as tvm_tool,
    )
    from mlfbuild.report.sbom.images import (
        add_board as add_board,
        add_images as add_images,
        images_of as images_of,
    )
    from mlfbuild.report.sbom.licenses import spdx_expression as spdx_expression
    from mlfbuild.report.sbom.requirements import (
        add_declared as add_declared,
        add_dependencies as add_dependencies,
    )
    from mlfbuild.report.sbom.sbom_document import Bill as Bill
    from mlfbuild.report.sbom.trees import TreeContents as TreeContents, read_tree as read_tree
else:
    __getattr__ = lazy_attributes(__name__)
