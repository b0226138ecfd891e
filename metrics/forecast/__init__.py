"""How accurate a method will be with more labels, by learning curves of other data sets."""
