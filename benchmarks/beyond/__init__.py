"""Benchmarks beyond the paper: heads on second moments, one prompt for all classes, streams without boundaries."""
