"""``mlfbuild calibrate``."""

from __future__ import annotations

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output.printing import show, show_json
from mlfbuild.cli.output.progress import building


@verb("file", "one_target", "no_wait", "format")
def calibrate(options: SharedOptions) -> None:
    """Measure the wait states of a device's memories.

    Small kernels run on the device of a target (runner), which also needs a microcontroller (mcu or timing). The output
    is the part of the project file with the wait states of flash and RAM with which the cycle model is closest to the
    measured cycles. It lists what the measurement does not determine, and the largest difference.
    """
    from mlfbuild.jobs import load
    from mlfbuild.usecases import calibrate_target

    project = load(options.file)
    with building(options, project) as progress:
        found = calibrate_target(project, options.target, progress)
    if options.json:
        show_json(
            {
                "target": found.target,
                "mcu": found.mcu,
                "device": found.device,
                "counter": found.counter,
                "memories": found.found.changed(),
                "residual": round(found.found.residual, 3),
                "not_identifiable": list(found.found.unknown),
            }
        )
    else:
        show(found.snippet())
