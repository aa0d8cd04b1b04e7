"""Arithmetic that kernels and delegates share: fixed point, requantization, windows, shapes.

Each function gives the results of the official kernels, integers bit for bit. Open first
``fixed_point``, ``requantize``, ``lookup_table``, ``padding`` and ``output_shape``.

Fixed point:

- ``fixed_point``: MultiplyByQuantizedMultiplier, and the other ways to round a product
- ``gemmlowp``: exp, tanh, logistic and other functions of fixed-point numbers
- ``requantize``: from integer accumulators to quantized outputs
- ``accumulator_scaling``, ``convolution_scale``: the factors of accumulators
- ``lookup_table``: operators of 8 and 16 bits as tables
- ``pair_tables``: operators of two 8-bit operands as tables, by official loop
- ``sigmoid_int16``: tables of int16 LOGISTIC and TANH

Quantized operators:

- ``quantized_add``, ``quantized_binary``, ``int16_sum``, ``int16_pairs``: ADD, SUB, MUL and DIV
- ``quantized_product``: weights, bias and scale of a matrix product
- ``quantized_reductions``: SUM, MEAN and REDUCE_PROD
- ``fixed_point_softmax``: SOFTMAX and LOG_SOFTMAX of the reference kernels
- ``int16_softmax``: SOFTMAX of int16
- ``quantize_rows``, ``hybrid``: float activations with integer weights
- ``vector_loop``: ends of the official vector loops, after which rounding differs

Products and windows:

- ``padding``: output sizes of windows, and the zeros around an input
- ``interior_pad``: padding between elements as well
- ``patches``: windows as rows of a matrix
- ``depthwise_taps``: sums over windows, channel by channel
- ``exact_matmul``: integer products by BLAS, exactly
- ``weights``: weights as plain arrays
- ``activation``: fused activations, their ranges, and clips
- ``channelwise``: constants of channels, repeated for long loops

Shapes and positions:

- ``output_shape``: setting shapes of outputs while preparing, or later
- ``broadcast``: shapes of inputs that are repeated
- ``elements``: moving elements of any type, including packed elements
- ``indices``: bounds and row-major numbers
- ``slice_index``: the masks of STRIDED_SLICE
- ``reduction``: input, output and axes of a reducing node
- ``resize_bilinear``, ``resize_nearest``: input positions for the pixels of a resized image

Algorithms:

- ``box_suppression``: greedy suppression of boxes
- ``counter_random``: Philox and Threefry
- ``cpp_heap``: the order that C++ gives to equal elements
- ``farmhash``: FarmHash's fingerprint of 64 bits
"""

from delegraph.exports import exports_of

__getattr__, __dir__ = exports_of(
    __name__, __file__, "int16_pairs", "int16_softmax", "pair_tables", "quantize_rows"
)
