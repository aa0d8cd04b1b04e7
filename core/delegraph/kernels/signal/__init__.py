"""TFLM's signal operators, which turn sound samples into the inputs of small models.

They are custom operators named ``Signal...``; each is in the file of its name, and ``options.py``
reads their options, FlexBuffers. Operators on a stream of sound keep data between invokes until
variables are reset.

Source:
    tflite-micro/signal/micro/kernels and tflite-micro/signal/src.
"""
