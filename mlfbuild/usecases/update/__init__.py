"""Replace the file of a model by a newer one, after both versions were compared.

``replacing`` builds both versions, compares their interface, sizes and instructions, and writes files; ``outputs``
compares what the versions compute, and ``model_update`` has the result.
"""
