"""``mlfbuild.lock``: write it, check it, and build exactly what it lists.

A firmware image depends on more than its repository: model files, commits of libraries, compilers of models, and the
cross compiler of this machine. The lock file has the hash or version of each, so that a build years later, or on
another machine, either gives the same archives or says what differs.

Data: a ``Lock`` has four parts. ``models`` are inputs (the file, further files, the compiler and its version),
``dependencies`` are commits and content hashes of required libraries, ``toolchains`` are programs and toolchain files
by target, and ``archives`` are results: the hash of each archive by target and model.

Rules
  1. ``lock_project`` resolves, fetches and builds archives, and then writes the present facts. Facts that this run
     could not determine (a toolchain that is not installed, models left out with ``--model``) stay as they were locked.
  2. An ordinary build reads only the commits of repositories (``jobs.pins``): a tag that moved changes nothing. All
     else may differ; that is normal during development.
  3. A frozen build (``freeze``) compares everything that it uses. Inputs come first, because a changed model explains
     a changed archive; archives are compared before anything is unpacked, so that a difference leaves no trace.
  4. Facts of the lock file that the project no longer has are not differences for a build of some targets, but
     ``check_lock`` reports them.
  5. The file contains no dates, no paths of a machine and no credentials, and one fact per line. Its ``content-hash``
     detects edits and merges; it is not a signature, and anyone who can write the file can write the hash.

For example, ``models/kws.tflite`` was trained again and not locked. ``mlfbuild build --frozen`` ends with exit status 1
and one line::

    mlfbuild.lock: model kws: file: locked 0a3a643c35ff, here 91d2...; restore the locked state, or accept it with ...

and not with a second one for the archive of ``kws``, whose difference follows from the first.

A frozen build does not verify outputs (``verify`` does) and does not lock the objects and images: they follow from the
archives, the firmware's own sources and the toolchain, which version control and the lock file have.
"""
