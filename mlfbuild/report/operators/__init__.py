"""The cost of each operator of a model: its bytes of flash in an image, and its instructions and cycles in a run.

``network_sizes`` has the bytes, ``image_networks`` finds the networks of an image's models, ``runs`` runs models on
emulated boards, and ``profile`` has the instructions of a run.
"""
