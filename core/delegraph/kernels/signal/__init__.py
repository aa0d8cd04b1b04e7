"""TFLM's signal operators, which turn sound samples into the inputs of small models.

They are custom operators named ``Signal...``; each is in the file of its name, and ``options.py``
reads their FlexBuffers. Operators on a stream of sound keep the data that they need until variables
are reset.

Source:
    tflite-micro/signal/micro/kernels and tflite-micro/signal/src.
"""
