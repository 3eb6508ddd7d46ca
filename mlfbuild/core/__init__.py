"""What every room uses: errors with fields, files that are whole or absent, external programs, and text for terminals.

``errors`` has one class for each exit code; ``files`` reads and writes whole files, atomically; ``processes`` finds and
runs programs; ``system_packages`` says how to install them; ``text`` makes untrusted names fit for one line; ``lazy``
makes the faces of rooms. Nothing here knows what a model, a target or an archive is.
"""
