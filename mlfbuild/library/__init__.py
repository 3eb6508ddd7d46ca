"""Libraries: what compilers make and archives hold."""

from mlfbuild.library.content import CHUNK, Content, LazyBytes, chunks, text_of
from mlfbuild.library.memory import (
    CPU_DEVICE,
    MainMemory,
    OperatorBuffer,
    OperatorFunction,
    Pool,
    StorageEntry,
    TensorInfo,
)
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
    "OperatorBuffer",
    "OperatorFunction",
    "Pool",
    "StorageEntry",
    "Target",
    "TensorInfo",
    "chunks",
    "text_of",
]
