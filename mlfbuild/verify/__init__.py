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
    from mlfbuild.verify.calibration import (
        Calibration as Calibration,
        measured_kernels as measured_kernels,
        modelled_kernels as modelled_kernels,
        solve as solve,
    )
    from mlfbuild.verify.compare import (
        ElementDifference as ElementDifference,
        first_difference as first_difference,
        float_tolerance as float_tolerance,
    )
    from mlfbuild.verify.compare_report import (
        ComparedNetwork as ComparedNetwork,
        RunComparison as RunComparison,
        TensorDifference as TensorDifference,
    )
    from mlfbuild.verify.compare_tensors import (
        TensorPair as TensorPair,
        Traced as Traced,
        pair_ports as pair_ports,
        pair_traced as pair_traced,
    )
    from mlfbuild.verify.cycles import (
        CycleRuns as CycleRuns,
        Spread as Spread,
        chosen_counter as chosen_counter,
        measure_cycles as measure_cycles,
    )
    from mlfbuild.verify.device import (
        Connection as Connection,
        connected as connected,
        device_of as device_of,
        shipped_subject as shipped_subject,
        verify_shipped as verify_shipped,
    )
    from mlfbuild.verify.device_bundle import (
        BundledModel as BundledModel,
        DeviceBundle as DeviceBundle,
        bundled_image as bundled_image,
        pack_bundle as pack_bundle,
        read_bundle as read_bundle,
    )
    from mlfbuild.verify.firmware_run import (
        flash_image as flash_image,
        run_firmware as run_firmware,
        run_image as run_image,
    )
    from mlfbuild.verify.locate import first_wrong_operator as first_wrong_operator
    from mlfbuild.verify.module import (
        verify_image as verify_image,
        verify_module as verify_module,
    )
    from mlfbuild.verify.origin import (
        VectorsOrigin as VectorsOrigin,
        vectors_file as vectors_file,
        vectors_origin as vectors_origin,
        vectors_remarks as vectors_remarks,
    )
    from mlfbuild.verify.result import VerifyReport as VerifyReport
    from mlfbuild.verify.sandbox import run_in_sandbox as run_in_sandbox
    from mlfbuild.verify.semihosting_io import SECONDS_A_CASE as SECONDS_A_CASE
    from mlfbuild.verify.vectors import (
        Vectors as Vectors,
        count_cases as count_cases,
        load_inputs as load_inputs,
        load_vectors as load_vectors,
        read_arrays as read_arrays,
    )
else:
    __getattr__ = lazy_attributes(__name__)
