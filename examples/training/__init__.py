"""What the training scripts of the examples share: a numpy network, int8 quantisation, a .tflite writer.

    layers.py        forward and backward pass of each layer, weights in TFLite's layouts
    network.py       a stack of layers and its training
    quantize.py      float network + calibration data -> int8 model; or the float model as it is
    tflite_file.py   model -> bytes of a .tflite file
    judge.py         the answers of TensorFlow Lite Micro, which firmware has to equal bit for bit

None of it is needed to build an example: the files the scripts make are committed.
"""
