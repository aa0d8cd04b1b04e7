"""Memory of TensorFlow Lite for Microcontrollers: arenas of fixed size, planners, allocators."""
