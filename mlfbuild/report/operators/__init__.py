"""The cost of each operator of a model: bytes of flash in an image (``network``), instructions of a run (``profile``).

``image_networks`` finds the networks of an image's models, ``runs`` and ``image_runs`` run them on emulated boards.
"""
