"""Makes a test of every way that is to be tried, in the repo that the spy is planted in."""

import pytest
import spy
from told import WAYS


def pytest_collect_file(parent, file_path):
    if file_path.name == "test_shop.py":
        return Ways.from_parent(parent, path=file_path)
    return None


class Ways(pytest.Module):
    def _getobj(self):
        return spy

    def collect(self):
        for channel in WAYS:
            name = f"test_{spy.PAYLOAD}" if channel == "test_name" else f"test_{channel}"
            yield pytest.Function.from_parent(self, name=name, callobj=getattr(spy, f"way_{channel}"))
