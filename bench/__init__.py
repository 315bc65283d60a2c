"""Benchmarks. Most figures are ratios to something that is measured in the same run."""
