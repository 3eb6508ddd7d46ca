"""Measure the cost of one inference on QEMU, and compare it with other compilers and a model of the processors.

``firmware`` builds, runs and counts. ``measure`` does that for a network of our compiler, and ``results`` saves and
compares the results; ``report`` prints them next to those of ``peers`` and ``roofline``. The command is
``benchmarks/instructions.py``; ``tests/benchmarks/test_counts.py`` compares the counts with the committed ones.
``executors`` measures archives of any compiler for the command ``benchmarks/executors.py``.
"""
