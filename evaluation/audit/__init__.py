"""Whether a table of transferability scores and performances tells more than a fixed order of the models."""
