"""Keys of packed constants."""

from __future__ import annotations

from delegraph import Tensor


def constant_key(tensor: Tensor | None) -> object:
    """Return a key that identifies a tensor's values; constants that share a buffer have one key.

    Args:
        tensor: the tensor; None for an absent input. The key of a constant is the place of its
            values
            in the model's memory; any other tensor's key is its index.
    """
    if tensor is None or not tensor.is_constant or tensor.data is None:
        return None if tensor is None else tensor.index
    quantization = tensor.quantization
    scales = None if quantization is None else quantization.scales.tobytes()
    return tensor.data.ctypes.data, tensor.type, tensor.shape, scales
