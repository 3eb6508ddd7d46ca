"""Code whose latencies on microcontrollers are public, and where its images are: the evidence of ``silicon.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mlfbuild.targets import MCUS, Mcu, MemoryKeys, TimingKeys


@dataclass(frozen=True)
class Point:
    """Code whose latency on a microcontroller is public."""

    code: str
    part: str
    what: str
    """Network or layer."""
    measured: int
    """Cycles: those that were published, or the median runtime times the clock."""
    data: str = ""
    """The memory of the part that contains the data, if it is not the one for data in the table of parts."""
    image: str = ""
    """Path of the image that a vendor flashed, in the repository of its results."""
    before: float | None = None
    """The error of an earlier model in per cent."""

    @property
    def mcu(self) -> Mcu:
        """The part, with its data in the right memory."""
        mcu = MCUS[self.part]
        # OctoML's submission and the reference left prefetch off, as Zephyr did in 2022.
        if self.part == "stm32l4r5" and not self.image:
            mcu = mcu.changed(TimingKeys(memories={"flash": MemoryKeys(prefetch=False)}))
        return mcu.with_data_in(self.data) if self.data else mcu

    @property
    def name(self) -> str:
        """The stem of its image."""
        return "-".join((*self.code.lower().replace(",", "").split(), self.part, *self.what.split()[:1]))


def _runs(code: str, part: str, runs: Mapping[str, tuple[float, int]]) -> Iterator[Point]:
    for network, (seconds, inferences) in runs.items():
        yield Point(code, part, network, round(seconds / inferences * MCUS[part].clock))


NETWORKS = (
    *_runs("CMSIS-NN", "stm32l4r5", {
        "kws": (19.962, 200), "ic": (38.955, 100), "vww": (30.122, 100), "ad": (17.210, 2000),
    }),
    *_runs("TVM", "stm32l4r5", {
        "kws": (14.402, 100), "ic": (38.922, 100), "vww": (33.656, 100), "ad": (11.718, 1000),
    }),
    *_runs("CMSIS-NN", "nrf5340", {
        "kws": (15.217, 200), "ic": (15.809, 50), "vww": (11.602, 50), "ad": (12.533, 2000),
    }),
    *_runs("TFLM 2.3.1", "stm32l4r5", {
        "kws": (18.192, 100), "ic": (70.426, 100), "vww": (60.054, 100), "ad": (10.052, 1000),
    }),
)  # fmt: skip
"""Median of five runs in seconds, and the inferences of a run.

mlcommons/tiny_results_v1.0, closed/OctoML/results; TFLM: mlcommons/tiny_results_v0.5, closed/reference/results.
"""
LAYERS = tuple(
    Point("layer", "alif-e8", what, cycles, data="sram")
    for what, cycles in (
        ("1 conv 3x3 stride 2, 3 to 32 channels, 224x224", 13_754_047),
        ("2 depthwise 3x3, 32 channels, 112x112", 13_715_766),
        ("3 conv 1x1, 32 to 16 channels, 112x112", 4_915_937),
        ("4 conv 1x1, 16 to 96 channels, 112x112", 24_249_462),
        ("5 depthwise 3x3 stride 2, 96 channels, 112x112", 10_286_711),
        ("6 conv 1x1, 96 to 24 channels, 56x56", 2_791_555),
        ("7 conv 1x1, 24 to 144 channels, 56x56", 10_329_014),
        ("8 depthwise 3x3, 144 channels, 56x56", 15_319_785),
    )
)
"""pytorch/executorch issue 17651: the first layers of MobileNetV2, weights in MRAM and activations in SRAM."""


def _vendor(
    code: str, part: str, folder: str, images: Mapping[str, tuple[str, float, float | None]]
) -> Iterator[Point]:
    for network, (path, throughput, before) in images.items():
        clock = MCUS[part].clock
        yield Point(code, part, network, round(clock / throughput), image=f"{folder}/{path}", before=before)


_BOSCH, _ST = "closed/bosch/code", "closed/STMicroelectronics/code"
VENDORS = (
    *_vendor("Bosch v1.1", "stm32g0b1", f"tiny_results_v1.1/{_BOSCH}/NUCLEO_G0B1RE", {
        "ad": ("ad/BUILD/NUCLEO_G0B1RE/GCC_ARM-CUSTOM_PROFILE/code.bin", 21.484, None),
        "ic": ("ic/BUILD/NUCLEO_G0B1RE/GCC_ARM-CUSTOM_PROFILE/code.bin", 0.599, None),
        "kws": ("kws/BUILD/NUCLEO_G0B1RE/GCC_ARM-CUSTOM_PROFILE/code.bin", 1.472, None),
        "vww": ("vww/BUILD/NUCLEO_G0B1RE/GCC_ARM-CUSTOM_PROFILE/code.bin", 0.535, None),
    }),
    *_vendor("Bosch v1.1", "stm32h7a3", f"tiny_results_v1.1/{_BOSCH}/NUCLEO_H7A3ZI", {
        "ad": ("ad/h7_a3_ml_perf/Release/h7_a3_ml_perf.bin", 737.281, None),
        "ic": ("ic/BUILD/NUCLEO_H7A3ZI_Q/GCC_ARM-CUSTOM_PROFILE/code_application.bin", 21.353, None),
        "kws": ("kws/BUILD/NUCLEO_H7A3ZI_Q/GCC_ARM-CUSTOM_PROFILE/code_application.bin", 67.956, None),
        "vww": ("vww/Release/h7a3_vww.bin", 22.906, None),
    }),
    *_vendor("Bosch v1.1", "stm32l4r5", f"tiny_results_v1.1/{_BOSCH}/NUCLEO_L4R5ZI", {
        "ad": ("ad/Release/l4r5_ad.bin", 176.699, None),
        "ic": ("ic/Release/l4r5_ic.bin", 5.586, None),
        "kws": ("kws/Release/l4r5_kws.bin", 15.954, None),
        "vww": ("vww/Release/l4r5_vww.bin", 5.533, None),
    }),
    *_vendor("Bosch v1.1", "stm32u575", f"tiny_results_v1.1/{_BOSCH}/NUCLEO_U575ZI", {
        "ad": ("ad/Release/m33_ad2.bin", 262.993, None),
        "ic": ("ic/Release/m33_ic.bin", 8.493, None),
        "kws": ("kws/Release/m33_kws.bin", 25.166, None),
        "vww": ("vww/Release/m33_vww.bin", 8.715, None),
    }),
    *_vendor("Bosch v1.2", "stm32f746", f"tiny_results_v1.2/{_BOSCH}/DISCO_F746NG_int8", {
        "ad": ("ad/disco_ad.bin", 584.38, 1.1),
        "ic": ("ic/disco_ic.bin", 15.986, 0.9),
        "kws": ("kws/disco_kws.bin", 52.746, 0.1),
        "vww": ("vww/disco_vww.bin", 17.468, -1.4),
    }),
    *_vendor("Bosch v1.2", "stm32g0b1", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_G0B1RE_int8", {
        "ad": ("ad/nucleo_g0b1re_ad.bin", 24.454, 11.5),
        "ic": ("ic/nucleo_g0b1re_ic.bin", 0.657, 0.6),
        "kws": ("kws/nucleo_g0b1re_kws.bin", 2.107, 0.1),
        "vww": ("vww/nucleo_g0b1re_vww.bin", 0.707, 0.7),
    }),
    *_vendor("Bosch v1.2", "stm32h7a3", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_H7A3ZI_int8", {
        "ad": ("ad/h7_a3_ml_perf.bin", 735.615, -3.9),
        "ic": ("ic/h7a3_ic.bin", 21.811, 0.9),
        "kws": ("kws/h7a3_kws.bin", 68.083, -0.1),
        "vww": ("vww/h7a3_vww.bin", 22.85, -1.1),
    }),
    *_vendor("Bosch v1.2", "stm32l4r5", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_L4R5ZI_int8", {
        "ad": ("ad/l4r5_ad.bin", 171.375, -2.9),
        "ic": ("ic/l4r5_ic.bin", 5.539, -1.3),
        "kws": ("kws/l4r5_kws.bin", 16.623, -4.1),
        "vww": ("vww/l4r5_vww.bin", 5.54, -3.2),
    }),
    *_vendor("Bosch v1.2", "stm32u575", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_U575ZI_int8", {
        "ad": ("ad/m33_ad2.bin", 262.86, -5.1),
        "ic": ("ic/m33_ic.bin", 8.296, -0.1),
        "kws": ("kws/m33_kws.bin", 25.918, -1.2),
        "vww": ("vww/m33_vww.bin", 8.345, -1.6),
    }),
    *_vendor("Bosch v1.2 fast", "stm32f746", f"tiny_results_v1.2/{_BOSCH}/DISCO_F746NG_int8_max_performance", {
        "ad": ("ad/disco_ad.bin", 701.809, None),
    }),
    *_vendor("Bosch v1.2 fast", "stm32h7a3", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_H7A3ZI_int8_max_performance", {
        "ad": ("ad/h7_a3_ml_perf.bin", 923.173, None),
    }),
    *_vendor("Bosch v1.2 fast", "stm32l4r5", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_L4R5ZI_int8_max_performance", {
        "ad": ("ad/l4r5_ad.bin", 211.492, None),
    }),
    *_vendor("Bosch v1.2 fast", "stm32u575", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_U575ZI_int8_max_performance", {
        "ad": ("ad/m33_ad2.bin", 323.527, None),
    }),
    *_vendor("Bosch v1.2 float", "stm32h7a3", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_H7A3ZI_float", {
        "ad": ("ad/h7a3_ad_float.bin", 191.208, -12.1),
        "ic": ("ic/h7a3_ic_float.bin", 8.05, None),
        "vww": ("vww/h7a3_vww_float.bin", 12.282, None),
    }),
    *_vendor("Bosch v1.2 small", "stm32h7a3", f"tiny_results_v1.2/{_BOSCH}/NUCLEO_H7A3ZI_int8_min_ram", {
        "ic": ("ic/h7a3_ic.bin", 11.833, None),
    }),
    *_vendor("ST v1.2", "stm32h7a3", f"tiny_results_v1.2/{_ST}/NUCLEO_H7A3ZI_Q", {
        "ad": ("anomaly_detection/Binaries/AD01-Performance.bin", 816.004, None),
        "ic": ("image_classification/Binaries/IC01-Performance.bin", 24.483, None),
        "kws": ("keyword_spotting/Binaries/KWS01-Performance.bin", 88.356, None),
        "vww": ("visual_wake_words/Binaries/VWW01-Performance.bin", 42.009, None),
    }),
    *_vendor("ST v1.2", "stm32l4r5-single-bank", f"tiny_results_v1.2/{_ST}/NUCLEO_L4R5ZI", {
        "ad": ("anomaly_detection/Binaries/AD01-Performance.bin", 190.086, None),
        "ic": ("image_classification/Binaries/IC01-Performance.bin", 6.056, None),
        "kws": ("keyword_spotting/Binaries/KWS01-Performance.bin", 23.155, None),
        "vww": ("visual_wake_words/Binaries/VWW01-Performance.bin", 11.245, None),
    }),
    *_vendor("ST v1.3", "stm32u385", f"tiny_results_v1.3/{_ST}/NUCLEO_U385RG_Q", {
        "ad": ("anomaly_detection/Binaries/AD_u385rg_Performance_921600.hex", 184.851, None),
        "ic": ("image_classification/Binaries/IC_u385rg_Performance_921600.hex", 5.481, None),
        "kws": ("keyword_spotting/Binaries/KWS_u385rg_Performance_962100.hex", 20.703, None),
        "vww": ("visual_wake_words/Binaries/VWW_u385rg_performance_921600.hex", 10.128, None),
    }),
    *_vendor("ST v1.3", "stm32u575", f"tiny_results_v1.3/{_ST}/NUCLEO_U575ZI_Q", {
        "ad": ("anomaly_detection/Binaries/AD_u575zi_Performance_921600.hex", 311.579, None),
        "ic": ("image_classification/Binaries/IC_u575zi_Performance_921600.hex", 9.133, None),
        "kws": ("keyword_spotting/Binaries/KWS_u575zi_Performance_962100.hex", 34.489, None),
        "vww": ("visual_wake_words/Binaries/VWW_u575zi_performance_921600.hex", 16.873, None),
    }),
)  # fmt: skip
"""Median throughput in inferences per second, from the results beside the images, and the error in per cent by the
model before its settings were checked with them (commit 1de55fc1), if it is known.

From mlcommons/tiny_results_v1.1 to v1.3; they and ST's folders in them have the Apache License 2.0. `hidden-waits` was
chosen with the points of the STM32G0B1 in v1.1, and the rule for prefetched code in caches with those of all parts that
prefetch in v1.1. All others are a test: no constant was chosen for them.
"""
POINTS = (*NETWORKS, *LAYERS, *VENDORS)


def chosen_for(point: Point) -> bool:
    """Return whether a rule or constant of the model was chosen with ``point`` in view, so that it is no test."""
    public = point.part == "stm32l4r5" and point.code in {"CMSIS-NN", "TVM"}
    return public or ("v1.1" in point.code and point.part in {"stm32g0b1", "stm32l4r5", "stm32u575"})
