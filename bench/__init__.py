"""Benchmarks: one script a question, run by ``python -m bench.run``."""
