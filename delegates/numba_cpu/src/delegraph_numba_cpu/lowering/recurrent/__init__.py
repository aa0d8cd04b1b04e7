"""Recurrent layers: LSTM and SVDF."""
