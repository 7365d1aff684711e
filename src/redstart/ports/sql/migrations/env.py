"""What Alembic runs. The connection and its transaction are the caller's."""

from __future__ import annotations

from alembic import context

from redstart.ports.sql.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
