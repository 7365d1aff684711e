import asyncio

import pytest

from seatbooking import Hall, SoldOut


def test_booking_takes_seats():
    async def scene():
        hall = Hall(5)
        await hall.book(2)
        return await hall.free()

    assert asyncio.run(scene()) == 3


def test_sold_out():
    async def scene():
        await Hall(1).book(2)

    with pytest.raises(SoldOut, match="1 left"):
        asyncio.run(scene())


def test_bookings_at_the_same_time_all_count():
    async def scene():
        hall = Hall(10)
        await asyncio.gather(*(hall.book() for _ in range(4)))
        return await hall.free()

    assert asyncio.run(scene()) == 6


def test_the_last_seat_is_sold_once():
    async def scene():
        hall = Hall(1)
        results = await asyncio.gather(hall.book(), hall.book(), return_exceptions=True)
        return [type(result).__name__ for result in results]

    assert asyncio.run(scene()) == ["NoneType", "SoldOut"]
