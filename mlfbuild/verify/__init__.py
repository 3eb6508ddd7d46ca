"""Check the numbers: run a module on an emulator or on this machine, and compare every output with the expected one.

``emulator`` runs firmware images on QEMU, ``host`` runs archives in Python. ``vectors`` reads inputs and expected
outputs, ``module`` verifies one module, ``compare`` finds the first difference, and ``locate`` the first operator with
a wrong result. ``compare_tensors`` and ``compare_report`` compare two networks tensor by tensor.

Example: verify a module of an unpacked tree on an emulated Cortex-M55::

    report = verify_module(tree, module, BOARDS["mps3-an547"], Path("kws.npz"), workdir, toolchain=toolchain)
    report.passed  # False if an output element differs, or if the run wrote outside its buffers

It does not choose models, targets or boards of a project; ``mlfbuild.usecases`` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.verify.calibration import Calibration, measured_kernels, modelled_kernels, solve
    from mlfbuild.verify.compare import ElementDifference, first_difference, float_tolerance
    from mlfbuild.verify.compare_report import ComparedNetwork, RunComparison, TensorDifference
    from mlfbuild.verify.compare_tensors import TensorPair, Traced, pair_ports, pair_traced
    from mlfbuild.verify.cycles import CycleRuns, Spread, chosen_counter, measure_cycles
    from mlfbuild.verify.device import Connection, connected, device_of, shipped_subject, verify_shipped
    from mlfbuild.verify.device_bundle import BundledModel, DeviceBundle, bundled_image, pack_bundle, read_bundle
    from mlfbuild.verify.firmware_run import flash_image, run_firmware, run_image
    from mlfbuild.verify.locate import first_wrong_operator
    from mlfbuild.verify.module import verify_image, verify_module
    from mlfbuild.verify.origin import VectorsOrigin, vectors_file, vectors_origin, vectors_remarks
    from mlfbuild.verify.result import VerifyReport
    from mlfbuild.verify.sandbox import run_in_sandbox
    from mlfbuild.verify.semihosting_io import SECONDS_A_CASE
    from mlfbuild.verify.vectors import Vectors, count_cases, load_inputs, load_vectors, read_arrays
else:
    __getattr__ = lazy_attributes(__name__)
