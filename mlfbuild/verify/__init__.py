"""Prove the numbers: run a module on an emulator or on this machine and compare every output with what was expected.

``emulator`` runs firmware images on QEMU, ``host`` runs archives in Python; ``vectors`` reads inputs and expected
outputs, ``module`` verifies one module, ``compare`` finds the first difference and ``locate`` the first operator whose
result is wrong.
"""
