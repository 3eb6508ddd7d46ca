"""Instructions and sizes of other compilers for the same networks, with the same GCC and method.

TensorFlow Lite Micro 90b983c2 with CMSIS-NN 4ab83cc3 (for float32 with its reference kernels), TVM 0.14.0 with CMSIS-NN
4.1.0 (for float32 with TVM's own kernels), onnx2c ea045cc1.
"""

from __future__ import annotations

from dataclasses import dataclass

TFLM = "TFLM + CMSIS-NN"
TVM = "TVM + CMSIS-NN"
TFLM_FLOAT = "TFLM"
TVM_FLOAT = "TVM"
ONNX2C = "onnx2c"
ONNX2C_O3 = "onnx2c -O3"


@dataclass(frozen=True)
class Sizes:
    """Bytes on the M4, without the test's own; RAM with inputs and outputs, without the stack."""

    code: int
    weights: int
    ram: int
    stack: int


@dataclass(frozen=True)
class Peer:
    """The instructions of one peer for one network on each core; ``None`` if they were not counted."""

    name: str
    m4: int
    m7: int | None
    m55: int | None
    sizes: Sizes

    def instructions(self, cpu: str) -> int | None:
        """Return the instructions on ``cpu``; ``None`` if they were not counted."""
        return {"cortex-m4": self.m4, "cortex-m7": self.m7, "cortex-m55": self.m55}.get(cpu)


PEERS = {
    "kws": (
        Peer(TFLM, 7_699_799, 7_645_617, 1_816_354, Sizes(88_318, 53_936, 23_460, 1_252)),
        Peer(TVM, 8_288_906, 8_205_565, 2_883_899, Sizes(18_837, 33_584, 17_648, 892)),
    ),
    "ic": (
        Peer(TFLM, 29_863_871, 30_026_640, 4_912_655, Sizes(83_274, 98_496, 55_636, 1_252)),
        Peer(TVM, 29_875_864, 29_882_431, 4_858_622, Sizes(16_937, 84_128, 52_800, 780)),
    ),
    "ad": (
        Peer(TFLM, 582_927, 583_231, 285_547, Sizes(35_094, 276_976, 3_220, 756)),
        Peer(TVM, 582_939, 583_214, 247_763, Sizes(4_509, 270_880, 2_032, 512)),
    ),
    "vww": (
        Peer(TFLM, 24_101_877, 24_025_504, 6_558_687, Sizes(88_318, 333_288, 101_348, 1_252)),
        Peer(TVM, 24_107_714, 23_933_656, 6_456_453, Sizes(22_997, 262_864, 82_944, 852)),
    ),
    "ic_f32": (
        Peer(TFLM_FLOAT, 99_931_108, 99_082_778, 77_579_173, Sizes(50_130, 318_144, 202_400, 656)),
        Peer(TVM_FLOAT, 105_920_938, 105_435_884, 94_052_290, Sizes(5_250, 310_832, 217_504, 144)),
    ),
    "ad_f32": (
        Peer(TFLM_FLOAT, 1_360_198, 1_358_515, 1_102_624, Sizes(23_670, 1_067_648, 5_168, 504)),
        Peer(TVM_FLOAT, 2_153_204, 2_153_251, 2_052_144, Sizes(3_753, 1_063_456, 8_336, 140)),
        Peer(ONNX2C, 1_344_344, 1_344_345, 950_022, Sizes(1_462, 1_063_456, 6_128, 32)),
    ),
    "vww_f32": (
        Peer(TFLM_FLOAT, 86_299_603, 86_568_410, 72_308_379, Sizes(45_590, 866_284, 322_448, 664)),
        Peer(TVM_FLOAT, 67_690_393, 66_560_147, 61_820_615, Sizes(12_422, 843_408, 411_824, 156)),
        Peer(ONNX2C, 68_755_145, 69_558_719, 56_007_771, Sizes(7_702, 843_392, 405_616, 120)),
        Peer(ONNX2C_O3, 53_395_923, None, None, Sizes(13_686, 843_392, 405_616, 160)),
    ),
}
"""At -O2, as mlfbuild's own code, but for one."""


def best(network: str, cpu: str) -> Peer | None:
    """Return the peer with the fewest instructions, where they are known."""
    known = [peer for peer in PEERS[network] if peer.instructions(cpu) is not None]
    return min(known, key=lambda peer: peer.instructions(cpu) or 0, default=None)
