"""The names of the engines that run the tasks of a build: in ``jobs: {engine: dask}``, and of ``--on``.

The command line needs them at its start, so that this module imports nothing.
"""

HERE, DASK = "here", "dask"
ENGINES = (HERE, DASK)
