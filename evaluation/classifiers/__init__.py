"""Classifiers for photos with few labels: which method, how accurate, and the classifier itself."""
