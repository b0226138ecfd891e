"""The criterion, accuracy traces, and paired comparisons of samples to criterion."""
