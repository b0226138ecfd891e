"""Changes of the tables from each released version of the portal to the next, by Alembic."""
