"""Flash and RAM of a linked image by owner: each model, each library, the firmware's own code.

``image`` reads the ELF file, ``linker_map`` the map that GNU ld wrote, ``owners`` joins the two, and ``images`` does
all three for an image of a project or for any ELF file.
"""
