"""What each operator of a model costs in an image: bytes of flash (``network``) and instructions of a run (``profile``).

``image_networks`` finds the networks of an image's models, ``runs`` and ``image_runs`` run them on emulated boards.
"""
