"""Kernels of recurrent operators: RNN, LSTM, SVDF.

Open first: the file named by the operator (``unidirectional_sequence_lstm.py``, ``svdf.py``); all
RNN operators are in ``rnn.py``. ``lstm.py`` has the common parts of LSTM layers, ``layers.py`` the
loop over time of all recurrent layers.
"""
