"""Replace the file of a model by a newer one, after both versions were compared.

``replacing`` builds both versions, compares their interface, sizes and instructions, and writes files; ``differences``
compares what the versions compute, and has the result.
"""
