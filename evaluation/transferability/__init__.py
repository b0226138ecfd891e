"""Transferability: scores of source models on target data sets, from frozen features."""
