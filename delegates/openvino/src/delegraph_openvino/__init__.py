"""Delegate ``openvino``: Intel's OpenVINO compiles and runs partitions of a model."""
