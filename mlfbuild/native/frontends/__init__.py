"""Read model files as graphs.

``read_model(Path("kws.tflite"), "kws")`` returns a checked ``Graph`` called ``kws``, or raises an error whose place is
the file and, inside of it, the operator or tensor. A file that ends in ``.onnx`` is read as ONNX, every other file as
TensorFlow Lite. Each format has a package: ``onnx`` and ``tflite``. ``models`` also finds the files beside an ONNX
model that hold its weights, ``choices`` has what a project decides about a model.

Files are not trusted. Each package has a module ``control_flow`` that writes out loops and branches, and a file of a
kilobyte could become a billion nodes: ``node_budget`` limits what all expansions of a model make together.
``ConstantBudget`` (``graph/constant_budget``) limits the bytes of constants that are made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.frontends.choices import CONSTANT, DIM, SIGNATURE, STATE, AbsentInputs, Choices
    from mlfbuild.native.frontends.model_files import NetworkFiles, SourceFiles
    from mlfbuild.native.frontends.models import declared_ports, parse_files, parse_model, read_model
    from mlfbuild.native.frontends.tflite.npu import OriginalNetwork
    from mlfbuild.native.frontends.tflite.unsigned import HELD
else:
    __getattr__ = lazy_attributes(__name__)
