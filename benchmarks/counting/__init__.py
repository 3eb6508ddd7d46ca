"""What one inference of a network takes, counted on QEMU, beside other compilers and a model of the processors.

``firmware`` builds, runs and counts. ``measure`` does that for a network of our compiler, and ``results`` keeps and
compares what was measured; ``peers`` and ``roofline`` are what stands beside it, ``report`` prints it.
``benchmarks/instructions.py`` is the command, ``tests/benchmarks/test_counts.py`` holds the counts to those that are
committed. ``executors`` is for archives of any flavour, and ``benchmarks/executors.py`` the command.
"""
