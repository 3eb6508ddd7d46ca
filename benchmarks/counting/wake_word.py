"""The streaming wake word of MLPerf Tiny v1.3, whose model file is fetched for the measurement.

The benchmark's loop computes 40 features of each 32 ms of sound, moves them into a window of 30 rows, and runs the
network on the whole window (mlcommons/tiny, ``benchmark/reference_submissions/streaming_wakeword``, Apache-2.0). It
publishes the duty cycle: the time from the interrupt of the microphone's DMA to the end of the inference, divided by 32
ms. Its "estimated throughput" is the reciprocal of that time, features included.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from counting.cycles import PARTS, Modelled, model_cycles
from counting.published import Published
from mlfbuild.library import CompileRequest
from mlfbuild.native import Choices, read_network, windows_of
from mlfbuild.targets import CPUS
from mlfbuild.usecases.vectors import judged

NETWORK = "sww"
STREAM, FEATURES = "stream", "features"
"""Places of records: the network that receives a row per run, and the features as the reference computes them."""
PUBLISHED = {
    "stm32l4r5-single-bank": Published(17.886, 120, "ST v1.3"),
    "stm32u575": Published(11.630, 160, "ST v1.3"),
    "stm32h7a3": Published(4.251, 280, "ST v1.3"),
    "stm32u385": Published(19.354, 96, "ST v1.3"),
}
"""By part, from ``closed/STMicroelectronics/results/*/sww/performance/results.txt`` of mlcommons/tiny_results_v1.3."""
_RECORDINGS = 8
"""Recordings of 30 rows each, which are checked one after the other as a stream."""


def model_wake_word(part: str, place: str, source: Path) -> Modelled:
    """Model a run on ``part``, with code and weights in flash; as a stream if ``place`` is ``STREAM``.

    ``source`` is ``benchmark/training/streaming_wakeword`` of mlcommons/tiny. Every output is compared with that of
    TensorFlow Lite Micro for the features of the benchmark's calibration set. Raises as ``model_cycles``.
    """
    model = source / "trained_models/str_ww_ref_model.tflite"
    graph, _ = read_network(CompileRequest(NETWORK, model, CPUS["host"]))
    window = graph.tensor(graph.inputs[0])
    features = np.load(source / "calibration_samples.npz")["specs"] / window.affine.scale + window.affine.zero_point
    cases = np.rint(features).clip(-128, 127).astype(np.int8)[:, np.newaxis]
    rows = cases[:_RECORDINGS].reshape(-1, 1, 1, *window.shape[2:])
    seen = windows_of(rows, window) if place == STREAM else cases
    _, outputs = judged(model, [seen], 1, Choices())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "vectors.npz", in0=rows if place == STREAM else cases, out0=outputs[0])
        options = {"stream": place == STREAM}
        return model_cycles(NETWORK, PARTS[part], model, vectors=folder / "vectors.npz", options=options, folder=folder)
