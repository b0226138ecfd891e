"""A leaderboard of methods over settings, with its resolution."""
