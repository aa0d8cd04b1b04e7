"""Kernels of recurrent operators: RNN, LSTM, SVDF.

Open first: ``lstm.py``, ``rnn.py`` or ``svdf.py``, which have the kernels; ``layers.py`` has the
loop over time that all of them share.
"""
