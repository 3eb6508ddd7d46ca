"""The C types of tensor elements."""

from __future__ import annotations

from mlfbuild.native.graph.tensors import DType

C_TYPES = {
    DType.INT8: "int8_t",
    DType.UINT8: "uint8_t",
    DType.INT16: "int16_t",
    DType.UINT16: "uint16_t",
    DType.INT32: "int32_t",
    DType.INT64: "int64_t",
    DType.UINT32: "uint32_t",
    DType.UINT64: "uint64_t",
    DType.FLOAT32: "float",
    DType.BOOL: "uint8_t",
}
