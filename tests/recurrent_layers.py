"""Random recurrent layers, by their name in the tests."""

from delegraph.testing.recurrent_layers import (
    IntegerLstm,
    Maybe,
    Weights,
    gates,
    lstm_weights,
    state,
)

__all__ = ["IntegerLstm", "Maybe", "Weights", "gates", "lstm_weights", "state"]
