"""Short reports in the JSON form of ``mlfbuild report -o FILE.json``."""

from dataclasses import asdict
from typing import Any

from mlfbuild.project import Budget
from mlfbuild.report.document.read import FORMAT
from mlfbuild.report.sizes.owners import FLASH_KINDS, RAM_KINDS

Json = dict[str, Any]
_BOTH = "data"


def budget(**limits: int) -> Json:
    return asdict(Budget(**limits))


def piece(name: str, kind: str, size: int) -> Json:
    flash, ram = kind in FLASH_KINDS or kind == _BOTH, kind in RAM_KINDS
    return {"name": name, "kind": kind, "size": size, "flash": flash, "ram": ram}


def owner(name: str, *pieces: Json, **more: Any) -> Json:
    def taken(memory: str) -> int:
        return sum(each["size"] for each in pieces if each[memory])

    def of(kinds: tuple[str, ...]) -> dict[str, int]:
        return {kind: sum(each["size"] for each in pieces if each["kind"] == kind) for kind in kinds}

    kinds = {"flash": of(FLASH_KINDS), "ram": of(RAM_KINDS)}
    return {"name": name, "flash": taken("flash"), "ram": taken("ram"), "kinds": kinds, "pieces": list(pieces), **more}


def image(title: str, models: list[Json], others: list[Json], **more: Any) -> Json:
    firmware, _, target = title.partition(" for ")
    owners = [*models, *others]
    return {
        "firmware": firmware,
        **({"target": target, "cpu": "cortex-m4"} if target else {}),
        "sha256": "0" * 64,
        "flash": sum(each["flash"] for each in owners),
        "ram": sum(each["ram"] for each in owners),
        "size": {"text": 1, "data": 2, "bss": 3},
        "budget": budget(),
        "models": models,
        "others": others,
        **more,
    }


def report(*images: Json) -> Json:
    return {"mlfbuild_report": FORMAT, "images": list(images)}


def kws(filter_size: int = 8000, arena: int = 3000, **more: Any) -> Json:
    """Return a model with code, weights, a table and an arena."""
    return owner(
        "kws",
        piece("tvmgen_kws_run", "code", 400),
        piece("tvmgen_kws_conv2d_0_filter", "weights", filter_size),
        piece("tvmgen_kws_softmax_1_table", "tables", 256),
        piece("tvmgen_kws_workspace", "arena", arena),
        **more,
    )


def others(main: int = 500) -> list[Json]:
    return [
        owner("firmware", piece("main", "code", main), piece("counters", "data", 40)),
        owner("stack", piece("*fill*", "data", 0)),
    ]
