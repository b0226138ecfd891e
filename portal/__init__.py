"""The portal: receives the submissions of a challenge, scores them and ranks the participants."""
