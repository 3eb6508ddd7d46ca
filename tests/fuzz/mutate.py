"""Damage valid archives: their bytes, their members, or the content of a member."""

import bz2
import copy
import gzip
import json
import random
import struct
from collections.abc import Callable
from typing import Any

HEADER = 512
INTERESTING = (0, 1, 2, 7, 127, 128, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
NAMES = (
    "../evil", "/etc/passwd", "a/../../b", ".", "..", "", "metadata.json", "METADATA.JSON", "./metadata.json", "CON",
    "codegen/model.so", "codegen/host/src/../../../x", "x" * 300, "a\nb", "a\\b", "\udcff", "codegen", "README.md",
    "metadata-1.json", "parameters", "src/relay.txt", "executor-config/graph/graph.json", "relay.txt", "mlf.cmake",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 8, 1.5, 7.0, 2**63, -(2**31), "7", "", "graph", "vm", "operator", "../x", "a" * 200,
    "\u0000", [], {}, [[]], [0], [-1], ["c"], {"a": {}}, [[1, 2], [3]],
)  # fmt: skip


class Mutator:
    """Damages archives; the same seed gives the same archives."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def archive(self, files: dict[str, bytes]) -> bytes:
        """Return a tar of ``files`` with one or more defects."""
        members = list(files.items())
        for _ in range(self._random.choice((0, 1, 1, 1, 2, 4))):
            self._pick(self._content, self._content, self._content, self._names, self._members)(members)
        data = b"".join(_member(name, content, self._kind()) for name, content in members) + bytes(2 * HEADER)
        if self._random.random() < 0.3:
            data = self.damaged(data)
        elif self._random.random() < 0.2:
            data = self._headers(data)
        wrapped: Callable[[bytes], bytes] = self._pick(*[bytes] * 12, gzip.compress, bz2.compress)
        data = wrapped(data)
        return self.damaged(data) if wrapped is not bytes and self._random.random() < 0.5 else data

    def _pick(self, *choices: Any) -> Any:
        return self._random.choice(choices)

    def _kind(self) -> bytes:
        return (
            b"0" if self._random.random() < 0.995 else self._pick(b"1", b"2", b"3", b"5", b"6", b"L", b"S", b"g", b"x")
        )

    def _members(self, members: list[tuple[str, bytes]]) -> None:
        index = self._random.randrange(len(members))
        change = self._random.randrange(3)
        if change == 0:
            del members[index]
            members = members or [("x", b"")]
        elif change == 1:
            members.append(members[index])
        else:
            self._random.shuffle(members)
        if not members:
            members.append(("x", b""))

    def _names(self, members: list[tuple[str, bytes]]) -> None:
        index = self._random.randrange(len(members))
        name, content = members[index]
        other = self._pick(self._pick(*NAMES), name.upper(), "./" + name, name + "x", self._pick(*members)[0])
        members[index] = (other, content)

    def _content(self, members: list[tuple[str, bytes]]) -> None:
        index = self._random.randrange(len(members))
        name, content = members[index]
        if name.endswith((".json", ".graph")) and self._random.random() < 0.8:
            content = self.json(content)
        elif name.endswith((".c", ".h", ".relay", ".txt")) and self._random.random() < 0.7:
            content = self.text(content)
        else:
            content = self.damaged(content)
        members[index] = (name, content)

    def json(self, content: bytes) -> bytes:
        try:
            document = json.loads(content)
        except ValueError:
            return self.damaged(content)
        for _ in range(self._pick(1, 1, 2, 5)):
            self.change(document)
        return json.dumps(document).encode(errors="surrogatepass")

    def change(self, document: Any) -> None:
        """Change one value somewhere in ``document``."""
        places = []
        stack = [document]
        while stack:
            node = stack.pop()
            keys = list(node) if isinstance(node, dict) else range(len(node))
            places += [(node, key) for key in keys]
            stack += [node[key] for key in keys if isinstance(node[key], (dict, list))]
        if not places:
            return
        node, key = self._pick(*places)
        change = self._random.randrange(4)
        if change == 0:
            del node[key]
        elif change == 1 and isinstance(node, dict):
            node[self._pick("x", "version", "modules", "runtimes", "style", "memory", str(key) + "x")] = node.pop(key)
        elif change == 2 and isinstance(node[key], int):
            node[key] = self._pick(node[key] + 1, node[key] - 1, *INTERESTING)
        else:
            node[key] = copy.deepcopy(self._pick(*VALUES))  # a shared value could contain itself

    def text(self, content: bytes) -> bytes:
        """Cut, repeat or move pieces between brackets, quotes and spaces, which keeps most of the text valid."""
        ends = [0, *(i for i, byte in enumerate(content) if byte in b" \n(){}[];,\"'*/#%:"), len(content)]
        first, last = sorted(self._random.choice(ends) for _ in range(2))
        last = min(last, first + 200)
        piece = content[first:last]
        change = self._random.randrange(4)
        if change == 0:
            return content[:first] + content[last:]
        if change == 1:
            return content[:first] + piece * self._pick(2, 3, 50) + content[last:]
        at = self._random.choice(ends)
        other = self._pick(b"/*", b"*/", b'"', b"'", b"{", b"}", b"(", b"\\\n", b"#", b"\xff", b"\0", b"static ", piece)
        return content[:at] + other + content[at:]

    def damaged(self, data: bytes) -> bytes:
        if not data:
            return self._random.randbytes(self._pick(0, 1, 32))
        changed = bytearray(data)
        for _ in range(self._pick(1, 1, 2, 8)):
            at = self._random.randrange(len(changed))
            change = self._random.randrange(4)
            if change == 0:
                changed[at] = self._random.randrange(256)
            elif change == 1:
                value = struct.pack("<Q", self._pick(*INTERESTING))
                changed[at : at + 8] = value[: len(changed) - at]
            elif change == 2:
                del changed[at : at + self._pick(1, 8, HEADER)]
            else:
                changed[at:at] = self._random.randbytes(self._pick(1, 8))
            if not changed:
                break
        return bytes(changed)

    def _headers(self, data: bytes) -> bytes:
        """Change fields of a member's header and correct its checksum."""
        changed = bytearray(data)
        at = self._random.randrange(len(changed) // HEADER) * HEADER
        field, width = self._pick((0, 100), (124, 12), (156, 1), (257, 8), (345, 155))
        changed[at + field : at + field + width] = self._random.randbytes(width)
        if self._random.random() < 0.5:
            changed[at + 124 : at + 136] = b"%011o\0" % self._pick(0, 1, 511, 512, 2**31, 2**32)
        return bytes(_checked(changed, at))


def _checked(data: bytearray, at: int) -> bytearray:
    data[at + 148 : at + 156] = b" " * 8
    data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + HEADER])
    return data


def _member(name: str, content: bytes, kind: bytes) -> bytes:
    header = bytearray(HEADER)
    raw = name.encode(errors="surrogateescape")[:100]
    header[: len(raw)] = raw
    header[100:108] = b"0000644\0"
    header[124:136] = b"%011o\0" % len(content)
    header[156:157] = kind
    header[257:265] = b"ustar\x0000"
    return bytes(_checked(header, 0)) + content + bytes(-len(content) % HEADER)
