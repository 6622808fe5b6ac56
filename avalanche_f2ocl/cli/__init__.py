"""The command ``f2ocl``: learn from folders or zips of images, evaluate, predict, without writing Python."""
