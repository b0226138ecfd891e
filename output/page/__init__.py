"""Pages: tables and charts in one HTML file that needs nothing else, and the same charts as files for papers."""
