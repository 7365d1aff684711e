"""Typed settings from a mapping such as os.environ."""

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off"}


class SettingError(Exception):
    """A setting is missing or cannot be used; the message names it."""


def read_int(source, name, default=None):
    """The setting as a number. Without a default it must be there."""
    try:
        return int(source[name])
    except KeyError:
        if default is None:
            raise SettingError(f"{name} is not set") from None
        return default
    except TypeError:
        raise SettingError(f"{name} is not a number: {source[name]!r}") from None


def read_flag(source, name):
    """The setting as a yes or no; unset is no."""
    text = source.get(name, "no").strip().lower()
    if text not in TRUE | FALSE:
        raise SettingError(f"{name} is neither yes nor no: {text!r}")
    return text in TRUE
