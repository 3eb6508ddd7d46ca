"""Check a project beyond its file, without compiling: what builds and runs would refuse, and what nothing checks.

The project file was already read and its keys were checked, in ``mlfbuild.project``. Here are the mistakes that show
only together with other files or with tables of targets, and that a build or a run would report later.

Data: ``Foreseen`` has mistakes and warnings, each as the path of a key in the project file and a ``Mistake``, so that
the command line and editors can point to the line. ``requirements`` looks at libraries, devices and budgets;
``before_building`` at start-up code, runners, the names of a model's inputs and outputs, and missing tools.

Rules

  1. No more than headers of model files are read, archives are opened, and nothing is compiled. What
     only compiling shows stays unknown: ``known_requirements`` returns ``None``, and nothing is concluded from it.
  2. A check calls the function that refuses the mistake in a build and catches its error. So both have the same words,
     and none is stricter than the other.
  3. A file that cannot be read is skipped, if the build or another check reports it. One mistake should not appear
     twice.
  4. All mistakes are found in one run. ``foreseen`` returns them, ``check_dependencies`` raises one error with its own.
  5. What makes a build or a verification fail is a mistake. What merely has no effect is a warning: a budget that no
     build checks, a device that no model has code for, a provider that no model requires.

For example, target ``m4`` has ``runner: {gdb: localhost:3333}`` and no memory for test firmware. ``_device`` calls
``verify.device_of``, as `mlfbuild verify` will, and gets its error. If a model on ``m4`` has vectors, this is
a mistake at ``targets.m4.runner``; otherwise it is a warning, because the device can still run firmware.

`mlfbuild check` shows all of this, and `mlfbuild doctor` shows mistakes as reasons why a target cannot be built or
verified, so a new check appears in both.

Not here: mistakes in one file (``mlfbuild.project``), conflicts between models of a project (``project_mistakes`` in
``mlfbuild.jobs``), and the state of the machine (``usecases.doctor``), of which only missing compilers are reported.
"""
