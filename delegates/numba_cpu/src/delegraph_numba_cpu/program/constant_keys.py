"""Keys of packed constants."""

from __future__ import annotations

from delegraph import Tensor


def constant_key(tensor: Tensor | None) -> object:
    """Key of a tensor's values, equal for constants that share a buffer of the file.

    Args:
        tensor: constants stay in the file's memory as long as the model; any other tensor has its
            index for a key. None stands for an absent input.
    """
    if tensor is None or not tensor.is_constant or tensor.data is None:
        return None if tensor is None else tensor.index
    quantization = tensor.quantization
    scales = None if quantization is None else quantization.scales.tobytes()
    return tensor.data.ctypes.data, tensor.type, tensor.shape, scales
