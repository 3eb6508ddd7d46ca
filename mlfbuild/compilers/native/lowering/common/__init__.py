"""What several families of operators share: constants, structs of sizes, layouts of weights for DSP and Helium."""
