"""Published tables of performances and scores: where they are, how they are read, and what is expected of them."""
