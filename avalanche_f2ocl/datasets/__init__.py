"""Image data sets, in memory or read from the disk."""

from avalanche_f2ocl.datasets.loading import LoadedData, imagenet_r, keep_per_class, load

__all__ = ["LoadedData", "imagenet_r", "keep_per_class", "load"]
