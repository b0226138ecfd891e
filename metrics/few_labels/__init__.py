"""What few labels say without a validation set: folds, expected accuracy, calibration."""
