"""Alembic runs the changes over the connection, and within the transaction, of `Database.create_tables`."""

from alembic import context

from headstart.portal.records.tables import Table

context.configure(
    connection=context.config.attributes["connection"], target_metadata=Table.metadata, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
