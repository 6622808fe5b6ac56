"""One run (method, data set, backbone, seed), many of them, and their tables."""
