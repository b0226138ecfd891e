"""Tables of scores and performances: how their files are read, and whether they are valid."""
