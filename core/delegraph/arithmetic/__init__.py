"""What kernels and delegates compute with: fixed point, requantization, windows, shapes.

Open first: :mod:`~delegraph.arithmetic.fixed_point` for MultiplyByQuantizedMultiplier;
:mod:`~delegraph.arithmetic.requantize` for sums of integers to quantized outputs;
:mod:`~delegraph.arithmetic.lookup_table` for 8-bit operators as tables;
:mod:`~delegraph.arithmetic.padding` and :mod:`~delegraph.arithmetic.patches` for sliding windows;
:mod:`~delegraph.arithmetic.broadcast` and :mod:`~delegraph.arithmetic.output_shape` for shapes;
:mod:`~delegraph.arithmetic.activation` for fused activations.
"""
