"""Shared code of the training scripts: a network in numpy, int8 quantisation, and a .tflite writer.

    layers.py        forward and backward pass of each layer, weights in TFLite's layouts
    network.py       a stack of layers and its training
    quantize.py      float network + calibration data -> int8 model, or a float32 model
    tflite_file.py   model -> bytes of a .tflite file
    judge.py         the answers of TensorFlow Lite Micro, which the firmware must equal bit for bit

A build of an example does not require this code, because the generated files are committed.
"""
