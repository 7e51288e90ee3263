"""Benchmarks: what specli is measured with, and against what."""
