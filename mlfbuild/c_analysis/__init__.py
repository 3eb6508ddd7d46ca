"""What C sources and objects say, read without a compiler.

``c_text`` makes tokens of text, on which all others stand. ``c_symbols`` finds what a linker would see of a source
(``c_declaration`` and ``c_macros`` are its parts), ``symbols`` the same of an object; ``c_file`` tells what is written
in one: includes, macros, structs, functions.
"""
