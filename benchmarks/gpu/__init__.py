"""What a machine with a CUDA device is asked, in minutes: see ``python -m benchmarks.gpu --help``."""
