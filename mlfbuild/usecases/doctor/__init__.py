"""Find out which programs are installed, which are missing for each target, and how to install them on this system.

`mlfbuild doctor` answers one question: what does this machine lack to build and verify this project? Without a project,
the rows are those of the table of CPUs.

Data: ``Diagnosis`` has everything. ``InstalledProgram`` is a program with its version, ``TargetState`` a target with
the reasons why it cannot be built (``missing``) or verified (``unverified``), ``ProviderState`` a library that the
project requires. ``diagnosis`` looks at programs and targets, ``compiler_programs`` at what compiles models,
``providers`` at libraries, and ``packages`` at Python packages that damage each other.

Rules

  1. Nothing is installed, compiled for a target or written. Programs are only asked for their version, with a limit of
     time; a compiler is also asked for its C library, and a Python for TVM.
  2. What refuses a build decides here as well: ``require_compiler``, ``find_interpreter``, ``foreseen`` and
     ``provided_library`` are called, and their errors are the reasons. A second opinion would differ one day.
  3. A mistake in the project does not end the diagnosis. Each is a reason at the targets that it concerns, and the
     others are still examined. Only mistakes in the project file itself, or an unknown target, are errors.
  4. Building and verifying are separate: a target without an emulator builds. Only ``missing`` makes a project
     unhealthy, which is exit status 3 of the command.
  5. Missing programs are collected by name in ``needed``, for all targets together, so that the advice names each once.
     If an environment variable selects a program that does not work, the advice is to correct the variable.
  6. ``diagnose`` makes the state of each target, and then adds reasons in a fixed order: the programs of its models,
     mistakes, libraries. Each function takes a state and returns a new one.

For example, a project has a target ``m55`` on the board mps3-an547, and this machine has the compiler for Arm, but
neither Ninja nor QEMU. ``_state`` finds that Ninja is missing, so ``m55`` cannot be built; that the emulator is missing
is the reason why it cannot be verified. Both names are in ``needed``, and ``install`` has the commands for this system.

Not here: `mlfbuild check`, which looks for mistakes in the project and does not ask programs for their versions.
"""
