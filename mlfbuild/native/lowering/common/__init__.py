"""Shared by several operator families: constants, structs of sizes, layouts of weights for DSP and Helium."""
