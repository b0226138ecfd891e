"""Estimates from few labels without a validation set: folds, expected accuracy, calibration."""
