"""Libraries: what compilers make and archives hold."""

from mlfbuild.library.types import (
    CPU_DEVICE,
    ArchiveFile,
    CodegenFile,
    ExternalDependency,
    Library,
    MainMemory,
    Module,
    OperatorFunction,
    StorageEntry,
    TensorInfo,
)

__all__ = [
    "CPU_DEVICE",
    "ArchiveFile",
    "CodegenFile",
    "ExternalDependency",
    "Library",
    "MainMemory",
    "Module",
    "OperatorFunction",
    "StorageEntry",
    "TensorInfo",
]
