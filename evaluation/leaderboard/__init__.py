"""A leaderboard of methods over settings, which states its resolution."""
