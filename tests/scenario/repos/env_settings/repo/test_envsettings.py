import pytest

from envsettings import SettingError, read_flag, read_int


def test_number():
    assert read_int({"PORT": "9000"}, "PORT") == 9000


def test_default():
    assert read_int({}, "PORT", default=8080) == 8080


def test_missing_without_default():
    with pytest.raises(SettingError, match="PORT is not set"):
        read_int({}, "PORT")


def test_not_a_number():
    with pytest.raises(SettingError, match="PORT is not a number: 'http'"):
        read_int({"PORT": "http"}, "PORT", default=8080)


def test_flag():
    assert read_flag({"DEBUG": " Yes "}, "DEBUG") is True
    assert read_flag({}, "DEBUG") is False


def test_flag_that_is_neither():
    with pytest.raises(SettingError, match="DEBUG"):
        read_flag({"DEBUG": "maybe"}, "DEBUG")
