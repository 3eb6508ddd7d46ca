"""Check the numbers: run a module on an emulator or on this machine, and compare every output with the expected one.

**What.** A compiler of networks is right if the firmware computes what the model computes. So the same C that ships is
compiled for the device, linked with test firmware, run on a board, an emulator or here, and each output of each case is
compared with the one of the model's own framework, which the user exported as vectors (``.npz``).

**Data.** ``vectors`` reads inputs and expected outputs; the first axis is the case. ``emulator`` builds and runs images
on QEMU, ``device`` on hardware over any runner, ``host`` runs archives in Python. Inputs and outputs pass as files of
raw bytes through the calls of semihosting (``semihosting_io``). ``module`` verifies one module and returns a
``VerifyReport``; ``compare`` finds the first difference, and ``locate`` the first operator with a wrong result.
``compare_report`` compares two networks tensor by tensor.

**Why outputs are compared how** (``compare``):

1. Integers must be equal. Arithmetic of quantised networks is defined to the bit, so a difference of one is a wrong
   rounding, and a rounding that is wrong once may be wrong by much in the next layer.
2. Floats pass within ``1e-5 * sqrt(layers)`` of the largest expected value of the output. Kernels sum in another order
   than the framework, which is not an error; sums of n layers differ by independent roundings, whose total grows with
   the square root. A part of the largest value, not of each element: an element near 0 is the difference of large
   terms.
3. The scale of an output with a bound is that bound (1 for a sigmoid), because its error comes from its argument.
4. NaN equals NaN, and infinities must be equal; a run that overflows where the model does is right.
5. Each case runs twice, and both results must be the same: a module that reads memory that it did not write, or keeps
   what it must not, differs in its second run. The second run uses memory of the caller, if the module accepts it.
6. Guards around inputs, outputs and workspace must be unchanged, or the run wrote outside its buffers.

**Example.** Verify a module of an unpacked tree on an emulated Cortex-M55::

    report = verify_module(tree, module, BOARDS["mps3-an547"], Path("kws.npz"), workdir, toolchain=toolchain)
    report.passed  # False if an output element differs, or if the run wrote outside its buffers

With 3 outputs, 12 layers and a largest expected value of 8.0, a float may differ by 1e-5 * 3.46 * 8.0 = 2.8e-4.

**What it does not do.** It does not choose models, targets or boards of a project; ``mlfbuild.usecases`` does. It does
not judge accuracy: a network that is wrong in its framework is equally wrong here (``evaluate`` measures that). Vectors
prove the cases in them and no others; cycles of an emulator are modelled (``timing``), those of a device measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.verify.calibration import Calibration, measured_kernels, modelled_kernels, solve
    from mlfbuild.verify.compare import ElementDifference, first_difference, float_tolerance
    from mlfbuild.verify.compare_report import (
        ComparedNetwork, RunComparison, TensorDifference, TensorPair, Traced, pair_ports, pair_traced,
    )
    from mlfbuild.verify.cycles import CycleRuns, Spread, chosen_counter, control_registers, measure_cycles
    from mlfbuild.verify.device import Connection, connected, device_of, linker_script, shipped_subject, verify_shipped
    from mlfbuild.verify.device_bundle import BundledModel, DeviceBundle, bundled_image, pack_bundle, read_bundle
    from mlfbuild.verify.firmware_run import flash_image, run_firmware, run_image
    from mlfbuild.verify.locate import first_wrong_operator
    from mlfbuild.verify.module import verify_image, verify_module
    from mlfbuild.verify.result import VerifyReport
    from mlfbuild.verify.sandbox import run_in_sandbox
    from mlfbuild.verify.semihosting_io import SECONDS_A_CASE
    from mlfbuild.verify.vectors import (
        Vectors, VectorsOrigin, count_cases, generated_inputs, load_inputs, load_vectors, random_array, read_arrays,
        vectors_file, vectors_origin, vectors_remarks,
    )
else:
    __getattr__ = lazy_attributes(__name__)
