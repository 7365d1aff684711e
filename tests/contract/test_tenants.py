from __future__ import annotations

from redstart.testing.contracts.tenants import TenantContract


class TestTenants(TenantContract):
    """On every store of `conftest`."""
