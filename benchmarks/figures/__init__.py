"""Quoted figures: which command gives each number of the pages, and where its file has it."""
