"""The script that Alembic runs. The connection and its transaction belong to the caller."""

from __future__ import annotations

from alembic import context

from redstart.ports.sql.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
