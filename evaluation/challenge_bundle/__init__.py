"""Challenges as bundles for platforms that exist: Codabench and EvalAI."""
