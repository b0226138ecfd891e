"""The web server: pages for people, JSON for programs."""
