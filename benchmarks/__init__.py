"""Tables and figures of this project, each from one command; see benchmarks/README.md."""
