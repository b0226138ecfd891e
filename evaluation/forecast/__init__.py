"""`headstart forecast`: how many labels will be needed."""
