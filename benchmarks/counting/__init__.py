"""What one inference of a network takes, counted on QEMU, beside other compilers and a model of the processors.

``measure`` builds and runs one network, ``peers`` and ``roofline`` are what stands beside it, ``results`` keeps and
compares what was measured, ``report`` prints it. ``benchmarks/instructions.py`` is the command,
``tests/benchmarks/test_counts.py`` holds the counts to those that are committed.
"""
