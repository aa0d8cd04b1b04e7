"""The delegate ``openvino``: partitions of a model, compiled by Intel's OpenVINO."""
