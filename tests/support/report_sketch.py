"""Reports of made-up networks, in the form of version 2, for tests of drawings."""

from dataclasses import dataclass, field
from math import prod
from typing import Any

Json = dict[str, Any]
NO_BUDGET = dict.fromkeys(("flash", "ram", "stack", "instructions"))


@dataclass
class Sketch:
    """A network that grows by operators; tensors get the lowest offset that is free in their lifetime."""

    module: str = "net"
    tensors: list[Json] = field(default_factory=list)
    operators: list[Json] = field(default_factory=list)

    def input(self, shape: tuple[int, ...], name: str = "input", memory: str = "input") -> int:
        return self._tensor(name, shape, memory)

    def op(
        self, kind: str, reads: list[int], shape: tuple[int, ...], *, name: str = "", memory: str = "arena",
        macs: int | None = None, instructions: int | None = None, scratch: int = 0, weights: int = 0,
    ) -> int:  # fmt: skip
        """Add an operator and return its output."""
        index = len(self.operators)
        output = self._tensor(f"{name or kind.lower()}_{index}:0", shape, memory)
        self.operators.append({
            "name": name or f"{kind.lower()}_{index}",
            "operator": kind,
            "function": f"tvmgen_net_{kind.lower()}_{index}",
            "macs": macs,
            "inputs": reads,
            "outputs": [output],
            "scratch": {"offset": 0, "size": scratch} if scratch else None,
            "code": 400 + 10 * index,
            "weights": weights,
            "tables": 16,
            "pieces": [f"tvmgen_net_{kind.lower()}_{index}", *([f"filter_{index}"] if weights else []), f"t_{index}"],
            "instructions": instructions,
            "bound": None if instructions is None else instructions // 3,
        })  # fmt: skip
        return output

    def json(self) -> Json:
        """Return the network with lifetimes and offsets."""
        for index, tensor in enumerate(self.tensors):
            users = [at for at, operator in enumerate(self.operators) if index in operator["inputs"]]
            writers = [at for at, operator in enumerate(self.operators) if index in operator["outputs"]]
            last = len(self.operators) - 1 if tensor["memory"] == "output" else max([*users, *writers, 0])
            tensor |= {"first": min(writers, default=0), "last": last}
        arena = self._place()
        counted = [operator["instructions"] for operator in self.operators if operator["instructions"] is not None]
        profile = {"board": "mps2-an386", "inputs": "cases.npz", "instructions": sum(counted) + 40, "rest": 40}
        return {
            "module": self.module,
            "executor": "aot",
            "arena": arena,
            "tensors": self.tensors,
            "operators": self.operators,
            "rest": {"code": 120, "weights": 0, "tables": 44},
            **({"profile": profile} if counted else {}),
        }

    def _tensor(self, name: str, shape: tuple[int, ...], memory: str) -> int:
        offset = sum(tensor["memory"] == memory for tensor in self.tensors)
        size = prod(shape)
        entry = {"name": name, "dtype": "int8", "shape": list(shape), "size": size, "memory": memory, "offset": offset}
        self.tensors.append(entry)
        return len(self.tensors) - 1

    def _place(self) -> int:
        placed: list[Json] = []
        for tensor in (tensor for tensor in self.tensors if tensor["memory"] == "arena"):
            scratch = [operator["scratch"] for operator in self.operators[tensor["first"] : tensor["last"] + 1]]
            low = max((each["size"] for each in scratch if each), default=0)
            near = [other for other in placed if other["first"] <= tensor["last"] and tensor["first"] <= other["last"]]
            for other in sorted(near, key=lambda other: other["offset"]):
                if low + tensor["size"] <= other["offset"]:
                    break
                low = max(low, other["offset"] + other["size"])
            tensor["offset"] = low
            placed.append(tensor)
        scratch = [operator["scratch"]["size"] for operator in self.operators if operator["scratch"]]
        return max([*(tensor["offset"] + tensor["size"] for tensor in placed), *scratch, 0])


def chain(length: int = 6, *, counted: bool = True, name: str = "") -> Json:
    """Return a sequence of convolutions and a softmax."""
    sketch = Sketch()
    tensor = sketch.input((1, 32, 32, 3))
    for index in range(length - 1):
        work = 40_000 * (1 + index % 3)
        tensor = sketch.op(
            "CONV_2D", [tensor], (1, 16, 16, 4 + index % 5), name=f"{name}conv_{index}", macs=work, weights=300,
            instructions=2 * work if counted else None, scratch=256 * (index % 2),
        )  # fmt: skip
    sketch.op("SOFTMAX", [tensor], (1, 10), memory="output", instructions=900 if counted else None)
    return sketch.json()


def modelled(network: Json, *, clock: int = 120_000_000, waiting: int = 5) -> Json:
    """Return ``network``, whose runs were counted, with cycles on a microcontroller."""
    for operator in network["operators"]:
        if operator["instructions"] is not None:
            count = operator["instructions"]
            kinds = {"arithmetic": count, "memory": count // 2, "branches": count // 10, "waiting": count // waiting}
            operator |= {"cycles": sum(kinds.values()), "cycles_by_kind": kinds}
            operator["removed"] = {"channels": 4, "of": 12, "weights": 300, "macs": 1000}
    rest = {"arithmetic": 40, "memory": 20, "branches": 10, "waiting": 30}
    parts = [rest, *(operator["cycles_by_kind"] for operator in network["operators"] if "cycles" in operator)]
    by_kind = {kind: sum(part[kind] for part in parts) for kind in rest}
    cycles = sum(by_kind.values())
    figures = {"cycles": cycles, "latency": -(-cycles * 10**9 // clock), "by_kind": by_kind, "rest": rest}
    network["profile"]["modelled"] = {"mcu": "stm32l4r5", "clock": clock, "error": 12, **figures}
    return network


def residual() -> Json:
    """Return a network with a skip over two convolutions, a shortcut with a convolution, and four joined branches."""
    sketch = Sketch()
    one = sketch.op("CONV_2D", [sketch.input((1, 16, 16, 3))], (1, 16, 16, 8), macs=50_000, weights=216)
    two = sketch.op("CONV_2D", [one], (1, 16, 16, 8), macs=80_000, weights=576)
    three = sketch.op("CONV_2D", [two], (1, 16, 16, 8), macs=80_000, weights=576)
    added = sketch.op("ADD", [one, three], (1, 16, 16, 8))
    left = sketch.op("CONV_2D", [added], (1, 8, 8, 16), macs=70_000, weights=1152)
    left = sketch.op("CONV_2D", [left], (1, 8, 8, 16), macs=90_000, weights=2304)
    short = sketch.op("CONV_2D", [added], (1, 8, 8, 16), macs=9_000, weights=128)
    joined = sketch.op("ADD", [left, short], (1, 8, 8, 16))
    branches = [
        sketch.op("CONV_2D", [joined], (1, 8, 8, 4), macs=4_000, weights=64),
        sketch.op("CONV_2D", [sketch.op("CONV_2D", [joined], (1, 8, 8, 4))], (1, 8, 8, 8)),
        sketch.op("AVERAGE_POOL_2D", [joined], (1, 8, 8, 16)),
        sketch.op("CONV_2D", [sketch.op("MAX_POOL_2D", [joined], (1, 8, 8, 16))], (1, 8, 8, 4)),
    ]
    packed = sketch.op("CONCATENATION", branches, (1, 8, 8, 32))
    sketch.op("FULLY_CONNECTED", [packed], (1, 10), memory="output", macs=20_480, weights=20_480)
    return sketch.json()


def stateful() -> Json:
    """Return a network that keeps a tensor from one call to the next."""
    sketch = Sketch()
    frame, kept = sketch.input((1, 40)), sketch.input((1, 9, 40), "ring", "state")
    joined = sketch.op("CONCATENATION", [kept, frame], (1, 10, 40))
    scored = sketch.op("FULLY_CONNECTED", [joined], (1, 12), macs=4_800, weights=4_800)
    sketch.op("SOFTMAX", [scored], (1, 12), memory="output")
    return sketch.json()


def model(name: str, networks: list[Json], *, budget: Json | None = None, stack: Json | None = None) -> Json:
    """Return a model with a piece for each that its operators name."""
    sizes: list[Json] = []
    for network in networks:
        for operator in network["operators"]:
            kinds = ("code", "weights", "tables") if operator["weights"] else ("code", "tables")
            sizes += [piece(part, kind, operator[kind]) for part, kind in zip(operator["pieces"], kinds, strict=True)]
        sizes += [piece(f"{network['module']}_run", "code", 120), piece(f"{network['module']}_model_id", "tables", 44)]
        sizes.append(piece(f"{network['module']}_workspace", "arena", network["arena"], ram=True))
    about = {"budget": {**NO_BUDGET, **budget}} if budget else {}
    networks_of = {"networks": networks} if networks else {}
    return {**_owner(name, sizes), **about, **networks_of, **({"stack": stack} if stack else {})}


def piece(name: str, kind: str, size: int, *, ram: bool = False) -> Json:
    return {"name": name, "kind": kind, "size": size, "flash": not ram, "ram": ram}


def image(models: list[Json], *, target: str = "m4", budget: Json | None = None, more: int = 0) -> Json:
    """Return an image of ``models`` and the parts of every firmware, with ``more`` bytes of code."""
    others = [
        _owner("firmware", [piece("main", "code", 480 + more), piece("cases", "tables", 9_000)]),
        _owner("C library", [piece("printf", "code", 6_600)]),
        _owner("stack", [piece(".stack", "data", 16_640, ram=True)]),
    ]
    flash, ram = (sum(owner[memory] for owner in (*models, *others)) for memory in ("flash", "ram"))
    return {
        "firmware": "app", "target": target, "cpu": "cortex-m4", "sha256": f"{flash:064x}", "flash": flash,
        "ram": ram, "size": {"text": flash, "data": 0, "bss": ram}, "budget": {**NO_BUDGET, **(budget or {})},
        "models": models, "others": others,
    }  # fmt: skip


def report(*images: Json) -> Json:
    return {"mlfbuild_report": 2, "images": list(images)}


def _owner(name: str, pieces: list[Json]) -> Json:
    def of(memory: str, kinds: tuple[str, ...]) -> Json:
        return {kind: sum(each["size"] for each in pieces if each["kind"] == kind and each[memory]) for kind in kinds}

    return {
        "name": name,
        "flash": sum(each["size"] for each in pieces if each["flash"]),
        "ram": sum(each["size"] for each in pieces if each["ram"]),
        "kinds": {"flash": of("flash", ("code", "weights", "tables")), "ram": of("ram", ("arena", "state", "data"))},
        "pieces": pieces,
    }  # fmt: skip
