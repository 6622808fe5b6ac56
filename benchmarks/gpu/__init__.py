"""Measurements for a machine with a CUDA device, in minutes: see ``python -m benchmarks.gpu --help``."""
