import asyncio


class Store:
    """Keeps a number. Stands for a database: every access gives way to other tasks."""

    def __init__(self, value):
        self._value = value

    async def read(self):
        await asyncio.sleep(0)
        return self._value

    async def write(self, value):
        await asyncio.sleep(0)
        self._value = value
