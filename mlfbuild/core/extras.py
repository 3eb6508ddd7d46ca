"""Python packages that only some projects need: the extras of pyproject.toml.

The hint of the error names the libraries and their versions. It does not name the extra, because the package called
mlfbuild on PyPI is not this one.
"""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Mapping

from mlfbuild.core.errors import ToolNotFoundError

EXTRAS: Mapping[str, Mapping[str, str]] = {
    "onnx": {"onnx": "onnx>=1.16"},
    "images": {"PIL": "pillow>=10.1"},
    "quantize-onnx": {"onnx": "onnx>=1.16", "onnxruntime": "onnxruntime>=1.20"},
    "quantize-tflite": {"ai_edge_litert": "ai-edge-litert>=2.1", "ai_edge_quantizer": "ai-edge-quantizer>=0.10"},
    "ethos-u": {"ethosu.vela": "ethos-u-vela>=5.2,<6"},
    "bson": {"bson": "pymongo>=4.6"},
    "sbom": {
        "cyclonedx": "cyclonedx-python-lib>=11,<12",
        "spdx_tools.spdx": "spdx-tools>=0.8.5,<0.9",
        "license_expression": "license-expression>=30.4",
        "packageurl": "packageurl-python>=0.16",
    },
    "gdb": {"pygdbmi": "pygdbmi>=0.11"},
    "serial": {"serial": "pyserial>=3.5"},
    "pyocd": {"pyocd": "pyocd>=0.36"},
    "labgrid": {"labgrid": "labgrid>=24.0"},
    "parquet": {"pyarrow": "pyarrow>=14"},
    "distributed": {"distributed": "distributed>=2024.5"},
    "edit": {"ruamel.yaml": "ruamel.yaml>=0.18"},
}
"""Extra -> module that is imported -> requirement, as in pyproject.toml."""


def require_extra(extra: str, place: object, purpose: str) -> None:
    """Raise ``ToolNotFoundError`` if a module of ``extra`` is missing; ``purpose`` is the subject of the reason.

    For example, ``require_extra("serial", "target nucleo", "the runner")`` raises the reason ``the runner requires
    Python packages that are not installed`` with the hint ``pip install 'pyserial>=3.5'``.
    """
    missing = [requirement for module, requirement in EXTRAS[extra].items() if not _is_there(module)]
    if missing:
        reason = f"{purpose} requires Python packages that are not installed"
        hint = f"pip install {shlex.join(missing)}"
        raise ToolNotFoundError("extra-not-installed", place=place, reason=reason, hint=hint)


def _is_there(module: str) -> bool:
    try:
        # Imported, not only looked for: a package that fails to import, for example because it needs a library that the
        # system lacks, is of no use either.
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def installed_version(package: str) -> str:
    """Return the version of a Python package in this environment; empty if it is not installed."""
    from importlib import metadata  # with the package email, a tenth of a second

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
