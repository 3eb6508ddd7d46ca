"""Action results are the protobuf messages of the Remote Execution API, and damaged ones are refused."""

import itertools
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory
from hypothesis import given, strategies as st

from mlfbuild.cache.action_result import MAX_BLOBS, ActionResult, OutputFile
from mlfbuild.core import sha256

KWS = OutputFile("kws.tar", sha256(b"kws"), 3)
EMPTY = OutputFile("codegen/host/src/empty.c", sha256(b""), 0)
RESULT = ActionResult((KWS, EMPTY), "ci-3", 1.5)


def message_type() -> Any:
    """Return the class of ``ActionResult``, made by Google's library from the fields in remote_execution.proto."""
    kinds = descriptor_pb2.FieldDescriptorProto
    declared = {
        "Digest": [("hash", 1, kinds.TYPE_STRING, ""), ("size_bytes", 2, kinds.TYPE_INT64, "")],
        "OutputFile": [
            ("path", 1, kinds.TYPE_STRING, ""), ("digest", 2, kinds.TYPE_MESSAGE, ".v2.Digest"),
            ("is_executable", 4, kinds.TYPE_BOOL, ""),
        ],
        "ExecutedActionMetadata": [
            ("worker", 1, kinds.TYPE_STRING, ""),
            ("virtual_execution_duration", 12, kinds.TYPE_MESSAGE, ".google.protobuf.Duration"),
        ],
        "OutputDirectory": [("path", 1, kinds.TYPE_STRING, "")],
        "ActionResult": [
            ("output_files", 2, kinds.TYPE_MESSAGE, ".v2.OutputFile"),
            ("output_directories", 3, kinds.TYPE_MESSAGE, ".v2.OutputDirectory"),
            ("exit_code", 4, kinds.TYPE_INT32, ""), ("stdout_raw", 5, kinds.TYPE_BYTES, ""),
            ("execution_metadata", 9, kinds.TYPE_MESSAGE, ".v2.ExecutedActionMetadata"),
        ],
    }  # fmt: skip
    file = descriptor_pb2.FileDescriptorProto(name="v2.proto", package="v2", syntax="proto3")
    file.dependency.append("google/protobuf/duration.proto")
    for name, fields in declared.items():
        message = file.message_type.add(name=name)
        for field, number, kind, type_name in fields:
            label = kinds.LABEL_REPEATED if field.startswith("output_") else kinds.LABEL_OPTIONAL
            message.field.add(name=field, number=number, type=kind, type_name=type_name or None, label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(duration_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("v2.ActionResult"))


MESSAGE = message_type()


def test_googles_library_reads_and_writes_the_same_bytes() -> None:
    message = MESSAGE.FromString(RESULT.to_bytes())
    assert [(file.path, file.digest.hash, file.digest.size_bytes) for file in message.output_files] == [
        ("kws.tar", KWS.sha256, 3),
        ("codegen/host/src/empty.c", EMPTY.sha256, 0),
    ]
    assert (message.exit_code, message.execution_metadata.worker) == (0, "ci-3")
    assert message.execution_metadata.virtual_execution_duration.ToTimedelta().total_seconds() == 1.5
    assert message.SerializeToString(deterministic=True) == RESULT.to_bytes()
    assert ActionResult.from_bytes(RESULT.to_bytes()) == RESULT


def test_a_message_has_a_worker_so_that_servers_see_that_it_is_not_empty() -> None:
    assert MESSAGE.FromString(ActionResult(()).to_bytes()).execution_metadata.worker == "mlfbuild"


def test_fields_of_other_programs_are_skipped() -> None:
    message = MESSAGE.FromString(RESULT.to_bytes())
    message.output_files[0].is_executable = True
    message.stdout_raw = b"text"
    fixed = bytes([100 << 3 & 0x7F | 0x80 | 5, 100 >> 4, 1, 2, 3, 4])  # field 100 of four bytes
    assert ActionResult.from_bytes(message.SerializeToString() + fixed) == RESULT


def changed(**fields: Any) -> bytes:
    message = MESSAGE.FromString(RESULT.to_bytes())
    for name, value in fields.items():
        setattr(message, name, value)
    return bytes(message.SerializeToString())


def with_path(path: str) -> bytes:
    message = MESSAGE.FromString(RESULT.to_bytes())
    message.output_files[0].path = path
    return bytes(message.SerializeToString())


def with_digest(**fields: Any) -> bytes:
    message = MESSAGE.FromString(RESULT.to_bytes())
    for name, value in fields.items():
        setattr(message.output_files[0].digest, name, value)
    return bytes(message.SerializeToString())


def with_directory() -> bytes:
    message = MESSAGE.FromString(RESULT.to_bytes())
    message.output_directories.add(path="out")
    return bytes(message.SerializeToString())


REFUSED = {
    "nothing": b"",
    "failed action": changed(exit_code=1),
    "failed action, negative": changed(exit_code=-1),
    "directory": with_directory(),
    "two outputs of one path": with_path(EMPTY.path),
    **{
        f"path {path!r}": with_path(path)
        for path in ("", "/etc/passwd", "../x", "a/../b", "a//b", "a\\b", "C:x", "a\nb")
    },
    "long path": with_path("a" * 1025),
    "no digest": with_digest(hash=""),
    "digest in upper case": with_digest(hash=KWS.sha256.upper()),
    "other hash function": with_digest(hash="ab" * 20),
    "negative size": with_digest(size_bytes=-1),
    "size of a disk": with_digest(size_bytes=MAX_BLOBS + 1),
    "field number 0": b"\x00\x00" + RESULT.to_bytes(),
    "group": b"\x0b\x0c" + RESULT.to_bytes(),
    "endless varint": b"\x80" * 11 + RESULT.to_bytes(),
    "number for a message": b"\x10\x01" + RESULT.to_bytes(),
    "no UTF-8": RESULT.to_bytes().replace(b"kws.tar", b"kws.ta\xff"),
    "worker that steers a terminal": RESULT.to_bytes().replace(b"ci-3", b"\x1b[2J"),
}


@pytest.mark.parametrize("damage", REFUSED)
def test_other_messages_are_refused(damage: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        ActionResult.from_bytes(REFUSED[damage])


def is_read(data: bytes) -> bool:
    """Return whether a message is read; other errors than ``ValueError`` fail the test."""
    try:
        result = ActionResult.from_bytes(data)
    except ValueError:
        return False
    assert ActionResult.from_bytes(result.to_bytes()) == result
    return True


def test_every_cut_is_refused() -> None:
    """Also at the end of a field, where protobuf itself sees nothing wrong."""
    data = RESULT.to_bytes()
    for end in range(len(data)):
        with pytest.raises(ValueError, match=r"."):
            ActionResult.from_bytes(data[:end])


def test_every_changed_byte_is_refused_or_read() -> None:
    data = RESULT.to_bytes()
    changes = itertools.product(range(len(data)), (0x00, 0x7F, 0x80, 0xFF))
    read = [is_read(data[:at] + bytes([value]) + data[at + 1 :]) for at, value in changes]
    assert 0 < sum(read) < len(read) / 4


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    is_read(data)
