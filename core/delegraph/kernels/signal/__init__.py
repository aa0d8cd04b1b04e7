"""TFLM's signal operators, which turn sound samples into the inputs of small models.

They are custom operators named ``Signal...``; each is in the file of its name, and ``options.py``
reads their FlexBuffers. Those that follow a stream keep what they need of it until variables are
reset.

Source:
    tflite-micro/signal/micro/kernels and tflite-micro/signal/src.
"""
