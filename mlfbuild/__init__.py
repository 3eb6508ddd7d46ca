"""mlfbuild puts machine-learning models into microcontroller firmware.

The folders stand in the order of the data: a project file (``manifest``) names models and ``targets``; ``frontends``
read a model into a ``graph``; ``compilers`` make a ``library`` of it; ``archive`` packs the library as Model Library
Format; ``firmware`` unpacks it into a tree that a cross build takes; ``emulator`` runs the image. ``steps`` has one
function for each step, and the two drivers, ``scons`` and ``cli``, call nothing else.
"""

__version__ = "0.1.0"
