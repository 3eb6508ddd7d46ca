"""Libraries: what compilers make and archives hold.

``types``, ``memory`` and ``network`` are the value itself; its contents (``content``) may stay in a file until they are
asked for. What the parts look like in an archive stands in ``metadata`` (``metadata.json``), ``graph_json`` and
``params``; names and types of TVM in ``names``, ``data_type`` and ``devices``.
"""

from mlfbuild.library.content import CHUNK, Content, LazyBytes, chunks, spooled, text_of
from mlfbuild.library.memory import (
    CPU_DEVICE,
    MainMemory,
    OperatorBuffer,
    OperatorFunction,
    Pool,
    StorageEntry,
    TensorInfo,
    TracedTensor,
)
from mlfbuild.library.network import Network, NetworkOperator, NetworkTensor, Scratch
from mlfbuild.library.types import (
    FULL_MODEL,
    OPERATOR,
    ArchiveFile,
    CodegenFile,
    Context,
    ExternalDependency,
    Library,
    Module,
    Target,
)

__all__ = [
    "CHUNK",
    "CPU_DEVICE",
    "FULL_MODEL",
    "OPERATOR",
    "ArchiveFile",
    "CodegenFile",
    "Content",
    "Context",
    "ExternalDependency",
    "LazyBytes",
    "Library",
    "MainMemory",
    "Module",
    "Network",
    "NetworkOperator",
    "NetworkTensor",
    "OperatorBuffer",
    "OperatorFunction",
    "Pool",
    "Scratch",
    "StorageEntry",
    "Target",
    "TensorInfo",
    "TracedTensor",
    "chunks",
    "spooled",
    "text_of",
]
