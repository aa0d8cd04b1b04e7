"""Keys of packed constants."""

from __future__ import annotations

from delegraph import Tensor


def constant_key(tensor: Tensor | None) -> object:
    """Return a key that stands for a tensor's values among the keys of packed constants.

    Constants that share a buffer, with equal type, shape and scales, have one key: the address of
    the values, and these properties. The key of any other tensor is its index.

    Args:
        tensor: the tensor; None for an absent input, whose key is None.
    """
    if tensor is None or not tensor.is_constant or tensor.data is None:
        return None if tensor is None else tensor.index
    quantization = tensor.quantization
    scales = None if quantization is None else quantization.scales.tobytes()
    return tensor.data.ctypes.data, tensor.type, tensor.shape, scales
