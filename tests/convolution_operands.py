"""Random operands of convolutions, by their name in the tests."""

from delegraph.testing.convolution_operands import *  # noqa: F403 - its joint name here
