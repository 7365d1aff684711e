"""Sets the clocks of this process ahead: they speak of another day, or as if it had been running for long.

This file is run by the interpreter of the code under test, with nothing but its standard library, Python 3.8 or later.
"""

import datetime
import time

REAL_DATE, REAL_DATETIME = datetime.date, datetime.datetime


class DateKind(type):
    def __instancecheck__(cls, value):
        return isinstance(value, REAL_DATE)

    def __subclasscheck__(cls, kind):
        return issubclass(kind, REAL_DATE)


class DatetimeKind(type):
    def __instancecheck__(cls, value):
        return isinstance(value, REAL_DATETIME)

    def __subclasscheck__(cls, kind):
        return issubclass(kind, REAL_DATETIME)


def set_ahead(days):
    """What was imported from these modules before stays as it was: call it first."""
    ahead = days * 86400
    set_time_ahead(ahead)
    delta = datetime.timedelta(days=days)

    class Date(REAL_DATE, metaclass=DateKind):
        @classmethod
        def today(cls):
            day = REAL_DATE.today() + delta
            return cls(day.year, day.month, day.day)

        def __repr__(self):
            return "datetime." + REAL_DATE.__repr__(REAL_DATE(self.year, self.month, self.day)).rpartition(".")[2]

    class Datetime(REAL_DATETIME, metaclass=DatetimeKind):
        @classmethod
        def now(cls, tz=None):
            return cls.fromtimestamp(time.time(), tz)

        @classmethod
        def today(cls):
            return cls.fromtimestamp(time.time())

        @classmethod
        def utcnow(cls):
            return cls.fromtimestamp(time.time(), datetime.UTC).replace(tzinfo=None)

        def __repr__(self):
            return "datetime." + super().__repr__().rpartition("datetime.")[2]

    for kind, name in ((Date, "date"), (Datetime, "datetime")):
        kind.__name__ = kind.__qualname__ = name
        kind.__module__ = "datetime"
        setattr(datetime, name, kind)


def prepare_to_age():
    """Replaces the clocks that tell how long a process has run; what this gives back sets them ahead by seconds."""
    added = [0]

    def aged(clock, unit):
        return lambda *which: clock(*which) + added[0] * unit

    for name in ("time", "monotonic", "perf_counter", "process_time", "clock_gettime"):
        setattr(time, name, aged(getattr(time, name), 1))
        setattr(time, name + "_ns", aged(getattr(time, name + "_ns"), 10**9))

    def age(seconds):
        added[0] = seconds

    return age


def set_time_ahead(ahead):
    real_time, real_ns, real_strftime = time.time, time.time_ns, time.strftime

    def shifted(function):
        return lambda seconds=None: function(time.time() if seconds is None else seconds)

    time.time = lambda: real_time() + ahead
    time.time_ns = lambda: real_ns() + ahead * 10**9
    time.localtime, time.gmtime = shifted(time.localtime), shifted(time.gmtime)
    time.ctime = shifted(time.ctime)
    time.strftime = lambda form, moment=None: real_strftime(form, time.localtime() if moment is None else moment)
