"""Networks: their definitions, their weights, and the features that they compute."""
