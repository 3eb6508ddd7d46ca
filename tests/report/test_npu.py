"""What an NPU has of a model in reports, and Vela's estimate in profiles."""

from mlfbuild.library import NpuEstimate, NpuFacts, NpuLayer
from mlfbuild.report import npu_text, parts_by_device
from mlfbuild.report.sizes.owners import Owner, SizedSymbol


def piece(name: str, size: int, *, ram: bool = False) -> SizedSymbol:
    return SizedSymbol(name, "arena" if ram else "weights", size, flash=not ram, ram=ram, module="kws")


def test_bytes_are_those_of_the_core_or_of_the_npu() -> None:
    core = (piece("tvmgen_kws_run", 40), piece("tvmgen_kws_workspace", 512, ram=True))
    own = (
        piece("mlf_kws_ethos_u_commands_bin", 300),
        piece("mlf_kws_ethos_u_commands_bin_size", 4),
        piece("mlf_kws_ethos_u_weights0_bin", 2000),
        piece("tvmgen_kws_npu_workspace", 64, ram=True),
    )
    parts = parts_by_device(Owner("kws", (*core, *own)))
    assert [(part.device, part.flash, part.ram) for part in parts] == [
        ("core", 40, 0),
        ("ethos-u", 2304, 64),
        ("both", 0, 512),
    ]
    assert parts_by_device(Owner("kws", core)) == ()


def test_the_estimate_is_named_as_velas() -> None:
    layers = (NpuLayer("conv", "Conv2D", 750, 4000), NpuLayer("relu", "Relu", 0, 0), NpuLayer("y", "Softmax", 250, 24))
    facts = NpuFacts(
        accelerator="ethos-u55-128", memory_mode="shared-sram", system_config="Own", compiler="vela 5.2.0", stream=300,
        weights=2000, scratch=512, fast=0, on_core=("RELU y: keep-on-core names it",),
        estimate=NpuEstimate(cycles=1000, clock=500_000_000, macs=4024, sram=512, dram=0, flash=2000, layers=layers),
    )  # fmt: skip
    assert npu_text("kws for m55", facts).splitlines() == [
        "kws for m55 on ethos-u55-128: 1,000 cycles of the NPU, 2 us at 500 MHz, estimated by vela 5.2.0",
        "(Own, shared-sram; no NPU has measured it)",
        "cycles  share   MACs  operator",
        "   750  75.0%  4,000  Conv2D conv",
        "   250  25.0%     24  Softmax y",
        "on the core, which is not estimated:",
        "  RELU y: keep-on-core names it",
    ]
