"""The host's side of microTVM's RPC protocol, as far as sessions with executors and system libraries use it.

Written from the description in ``mlfbuild/runtime/rpc/mlf_rpc.h`` and independent of the device's side: CRC-16 by
``binascii``, packets by ``struct``.
"""

import binascii
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

NONCE = 0x5A
CALL, RETURN, EXCEPTION, COPY_FROM, COPY_TO, COPY_ACK, GET_GLOBAL = 3, 4, 5, 6, 7, 8, 9
FREE, ALLOCATE_WITH_SCOPE = 14, 17
INT, HANDLE, NULL, DEVICE, TENSOR, MODULE, FUNCTION, STRING, ARRAY = 0, 3, 4, 6, 7, 9, 10, 11, 13
CODES = {"i": 0, "u": 1, "f": 2}


class Bytes(Protocol):
    """A byte stream."""

    def read(self, size: int) -> bytes: ...

    def write(self, data: bytes) -> None: ...


class DeviceError(Exception):
    """The device answered with an exception."""


@dataclass(frozen=True)
class RemoteTensor:
    """A tensor in the device's memory."""

    data: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def packed(self, offset: int = 0) -> bytes:
        """Return it as requests contain it; its bytes begin at ``offset``."""
        code, bits = CODES[self.dtype.kind], 8 * self.dtype.itemsize
        head = struct.pack("<QiiiBBH", self.data, 1, 0, len(self.shape), code, bits, 1)
        return head + struct.pack(f"<{len(self.shape)}q", *self.shape) + struct.pack("<Q", offset)


@dataclass(frozen=True)
class Remote:
    """A module or function of the device."""

    type: int
    handle: int


def packet(payload: bytes) -> bytes:
    """Return ``payload`` as a packet."""
    body = b"\xff\xfd" + _escaped(struct.pack("<I", len(payload)) + payload)
    return body + _escaped(struct.pack("<H", binascii.crc_hqx(body, 0xFFFF)))


def _escaped(data: bytes) -> bytes:
    return data.replace(b"\xff", b"\xff\xff")


class Session:
    """A session with a device."""

    def __init__(self, stream: Bytes) -> None:
        """Start it."""
        self.stream = stream
        self.session = NONCE
        self.send(0, b"\x01")
        session, kind, body = self.receive()
        while kind == 2:  # the device has started
            session, kind, body = self.receive()
        assert (session & 0xFF, kind, body) == (NONCE, 1, b"\x01")
        self.session = session

    def send(self, kind: int, body: bytes) -> None:
        self.stream.write(packet(struct.pack("<HB", self.session, kind) + body))

    def receive(self) -> tuple[int, int, bytes]:
        """Return session, kind and message of the next packet."""
        assert self.stream.read(2) == b"\xff\xfd"
        raw = [b"\xff\xfd"]
        (length,) = struct.unpack("<I", self._plain(4, raw))
        payload = self._plain(length, raw)
        crc = binascii.crc_hqx(b"".join(raw), 0xFFFF)
        assert struct.unpack("<H", self._plain(2, [])) == (crc,)
        return *struct.unpack("<HB", payload[:3]), payload[3:]

    def _plain(self, size: int, raw: list[bytes]) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self.stream.read(size - len(data))
            if chunk.count(b"\xff") and (len(chunk) - len(chunk.rstrip(b"\xff"))) % 2:
                chunk += self.stream.read(1)
            raw.append(chunk)
            data += chunk.replace(b"\xff\xff", b"\xff")
        return data

    def request(self, code: int, body: bytes) -> tuple[int, bytes]:
        """Send a request; return code and body of the answer."""
        self.send(0x10, struct.pack("<QI", 4 + len(body), code) + body)
        session, kind, message = self.receive()
        assert (session, kind) == (self.session, 0x10)
        size, answer = struct.unpack("<QI", message[:12])
        assert size == len(message) - 8
        if answer == EXCEPTION:
            raise DeviceError(message[28:].decode())
        return answer, message[12:]

    def function(self, name: str) -> Remote | None:
        """Return the device's function ``name``."""
        body = struct.pack("<iiQ", 1, STRING, len(name)) + name.encode()
        _, answer = self.request(GET_GLOBAL, body)
        (handle,) = struct.unpack("<Q", answer[8:])
        return Remote(FUNCTION, handle) if handle else None

    def call(self, function: Remote, *arguments: Any) -> Any:
        """Call a function of the device."""
        types, values = zip(*map(_argument, arguments), strict=True) if arguments else ((), ())
        body = struct.pack(f"<Qi{len(types)}i", function.handle, len(types), *types) + b"".join(values)
        code, answer = self.request(CALL, body)
        assert code == RETURN
        return _result(answer)

    def get(self, module: Remote, name: str) -> Remote:
        """Return the function ``name`` of a module."""
        getter = self.function("tvm.rpc.server.ModuleGetFunction")
        assert getter is not None
        found = self.call(getter, module, name, 1)
        assert found is not None, name
        return found

    def executor(self, name: str = "default") -> Remote:
        """Return the AOT executor of a model."""
        system, create = self.function("runtime.SystemLib"), self.function("tvm.aot_executor.create")
        assert system is not None
        assert create is not None
        return self.call(create, self.call(system), (1, 0), name)

    def copy_to(self, tensor: RemoteTensor, values: NDArray[Any]) -> None:
        """Write all elements of a tensor, in parts that the device can receive."""
        data, part = values.astype(tensor.dtype).tobytes(), self.packet_size() - 100
        for offset in range(0, len(data), part):
            chunk = data[offset : offset + part]
            self.request(COPY_TO, tensor.packed(offset) + struct.pack("<Q", len(chunk)) + chunk)

    def copy_from(self, tensor: RemoteTensor) -> NDArray[Any]:
        """Read all elements of a tensor."""
        size, part, data = int(np.prod(tensor.shape)) * tensor.dtype.itemsize, self.packet_size() - 100, b""
        while len(data) < size:
            count = min(part, size - len(data))
            code, answer = self.request(COPY_FROM, tensor.packed(len(data)) + struct.pack("<Q", count))
            assert (code, len(answer)) == (COPY_ACK, count)
            data += answer
        return np.frombuffer(data, tensor.dtype).reshape(tensor.shape)

    def packet_size(self) -> int:
        """Return the largest request."""
        function = self.function("tvm.rpc.server.GetCRTMaxPacketSize")
        assert function is not None
        return int(self.call(function))

    def allocate(self, dtype: str, shape: Sequence[int]) -> RemoteTensor:
        """Allocate a tensor on the device."""
        wanted = RemoteTensor(0, np.dtype(dtype), tuple(shape))
        _, answer = self.request(ALLOCATE_WITH_SCOPE, struct.pack("<iii", 2, TENSOR, NULL) + wanted.packed())
        return RemoteTensor(*struct.unpack("<Q", answer[8:]), wanted.dtype, wanted.shape)

    def free(self, tensor: RemoteTensor) -> None:
        """Free a tensor that was allocated."""
        self.request(FREE, struct.pack("<iiiiiQ", 2, DEVICE, HANDLE, 1, 0, tensor.data))


def run_model(session: Session, inputs: Sequence[NDArray[Any]], name: str = "default") -> list[NDArray[Any]]:
    """Set the inputs of a model, run it, and return its outputs."""
    executor = session.executor(name)
    for index, values in enumerate(inputs):
        session.copy_to(session.call(session.get(executor, "get_input"), index), values)
    session.call(session.get(executor, "run"))
    count = session.call(session.get(executor, "get_num_outputs"))
    return [session.copy_from(session.call(session.get(executor, "get_output"), i)) for i in range(count)]


def _argument(value: Any) -> tuple[int, bytes]:
    if isinstance(value, Remote):
        return value.type, struct.pack("<Q", value.handle)
    if isinstance(value, RemoteTensor):
        return TENSOR, value.packed()
    if isinstance(value, str):
        return STRING, struct.pack("<Q", len(value.encode())) + value.encode()
    if isinstance(value, tuple):
        return DEVICE, struct.pack("<ii", *value)
    return INT, struct.pack("<q", value)


def _result(answer: bytes) -> Any:
    (count,) = struct.unpack_from("<i", answer)
    types = struct.unpack_from(f"<{count}i", answer, 4)
    (kind,) = struct.unpack_from("<q", answer, 4 + 4 * count)
    value = answer[12 + 4 * count :]
    if kind == ARRAY:
        assert types == (INT, TENSOR, HANDLE)
        data, _, _, dimensions, code, bits, _ = struct.unpack_from("<QiiiBBH", value)
        kinds = {number: letter for letter, number in CODES.items()}
        shape = struct.unpack_from(f"<{dimensions}q", value, 24)
        return RemoteTensor(data, np.dtype(f"{kinds[code]}{bits // 8}"), shape)
    if kind == STRING:
        return value[8:].decode()
    if kind == NULL:
        return None
    (number,) = struct.unpack("<Q", value)
    return Remote(kind, number) if kind in (MODULE, FUNCTION) else number
