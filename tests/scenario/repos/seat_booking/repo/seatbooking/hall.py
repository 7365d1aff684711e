from seatbooking.store import Store


class SoldOut(Exception):
    """There are not enough seats left."""


class Hall:
    def __init__(self, seats):
        self._free = Store(seats)

    async def book(self, count=1):
        """Takes that many seats, or none of them and raises SoldOut."""
        free = await self._free.read()
        if free < count:
            raise SoldOut(f"{free} left")
        await self._free.write(free - count)

    async def free(self):
        return await self._free.read()
