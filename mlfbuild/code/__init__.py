"""What C sources and objects say, read without a compiler: tokens, declarations, and the symbols a linker sees."""
