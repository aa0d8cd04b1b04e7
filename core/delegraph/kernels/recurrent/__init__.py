"""Kernels of recurrent operators: RNN, LSTM, SVDF."""
