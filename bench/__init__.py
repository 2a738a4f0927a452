"""Benchmarks and their peers: `acrouter bench NAME`."""
