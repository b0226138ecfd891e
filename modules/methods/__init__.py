"""Transfer methods, one file each."""
