"""The portal: where a challenge's submissions are handed in, scored, and ranked."""
