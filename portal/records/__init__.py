"""The database: teams, submissions, their scorings, the leaderboard and the log."""
