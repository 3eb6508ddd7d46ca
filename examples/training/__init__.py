"""Shared code of the training scripts: a network in numpy, and int8 quantisation. mlfbuild writes the files.

    layers.py        forward and backward pass of each layer, weights in TFLite's layouts
    network.py       a stack of layers and its training
    quantize.py      float network + calibration data -> the tensors and operators of an int8 or float32 file
    judge.py         the answers of TensorFlow Lite Micro, which the firmware must equal bit for bit

A build of an example does not require this code, because the generated files are committed.
"""
