"""The output of verbs: results, diagnostics and progress, in the forms for people, programs and CI systems.

``printing`` writes text and JSON, ``progress`` shows long work (``live`` on terminals, ``plain`` lines elsewhere),
``events`` has the form of both for programs, ``ci_formats`` those for CI systems, and ``hashes`` connects an image
with its bundle. ``invocation`` runs the command, and turns every error into its message and exit code.
"""
