"""Which values a test's id stands for, read from the marks that pytest leaves on functions.

This file is run by the interpreter of the code under test, with nothing but its standard library, Python 3.8 or later.
`Unsupported` is put here by the file that loads this one.
"""

# ruff: noqa: B905, F821 (an option of Python 3.10; a name that is put here)

import collections
import enum
import itertools
import re

MOST_PERMUTED = 4


def marks_of(module, kind, function):
    """The function's marks, the nearest first, as pytest orders them."""
    own = [listed(getattr(function, "pytestmark", ()))]
    if kind is not None:
        own += [listed(vars(each).get("pytestmark", ())) for each in kind.__mro__]
    own.append(listed(getattr(module, "pytestmark", ())))
    marks = [getattr(mark, "mark", mark) for group in own for mark in group]
    return [mark for mark in marks if hasattr(mark, "name") and hasattr(mark, "args")]


def listed(marks):
    return list(marks) if isinstance(marks, (list, tuple)) else [marks]


Mark = collections.namedtuple("Mark", "name args kwargs")


class Metafunc:
    """What a hook gets that makes parameter sets: it leaves them as marks."""

    def __init__(self, names, module, kind, function):
        self.fixturenames, self.module, self.cls, self.function = names, module, kind, function
        self.marks = []

    def parametrize(self, *args, **kwargs):
        self.marks.append(Mark("parametrize", args, kwargs))

    def __getattr__(self, name):
        raise Unsupported("its parameters are made with metafunc." + name)


def generated_marks(holders, names, module, kind, function):
    """The marks of the hooks `pytest_generate_tests` of these modules and classes."""
    made = Metafunc(names, module, kind, function)
    for holder in holders:
        hook = getattr(holder, "pytest_generate_tests", None)
        if hook is not None:
            try:
                hook(made)
            except Exception as error:
                raise Unsupported("the hook that makes its parameters fails: " + type(error).__name__) from error
    return made.marks


def values_for(marks, fixtures, chosen):
    """Argument or fixture to value for the parameter set of this id. Raises `Unsupported` where there is none.

    `fixtures` maps those of the test's fixtures that have parameters to their markers.
    """
    groups = [sets_of(mark) for mark in marks if mark.name == "parametrize"]
    groups += [made_sets([name], marker.params, marker.ids) for name, marker in fixtures.items()]
    if not groups and not chosen:
        return {}
    for ordered in itertools.permutations(groups) if 0 < len(groups) <= MOST_PERMUTED else [groups]:
        for combination in itertools.product(*ordered):
            if "-".join(each[0] for each in combination) == chosen:
                return {name: value for _, values in combination for name, value in values.items()}
    raise Unsupported("its parameters cannot be told from its id")


def sets_of(mark):
    """The id and the values of each parameter set of one mark."""
    named = {**dict(zip(("argnames", "argvalues", "indirect", "ids"), mark.args)), **mark.kwargs}
    if named.get("indirect"):
        raise Unsupported("its parameters go to fixtures")
    names = named["argnames"]
    names = [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else list(names)
    return made_sets(names, named["argvalues"], named.get("ids"))


def made_sets(names, given_values, ids):
    ids, sets = list(ids) if ids is not None and not callable(ids) else ids, []
    for index, given in enumerate(given_values):
        is_set = type(given).__name__ == "ParameterSet"
        own = given.id if is_set else None
        values = given.values if is_set else (given,) if len(names) == 1 else given
        text = own if isinstance(own, str) else id_of(names, tuple(values), index, ids)
        sets.append((text, dict(zip(names, values))))
    return numbered(sets)


def id_of(names, values, index, ids):
    if isinstance(ids, list) and ids[index] is not None:
        return escaped(str(ids[index]))
    function = ids if callable(ids) else None
    return "-".join(word_for(name, value, index, function) for name, value in zip(names, values))


def word_for(name, value, index, function):
    made = function(value) if function else None
    value = value if made is None else made
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, bytes):
        return value.decode("ascii", "backslashreplace")
    if value is None or isinstance(value, (int, float, bool, complex)):
        return str(value)
    if isinstance(value, re.Pattern):
        return escaped(value.pattern if isinstance(value.pattern, str) else value.pattern.decode("latin-1"))
    if isinstance(value, enum.Enum):
        return str(value)
    if isinstance(getattr(value, "__name__", None), str):
        return value.__name__
    return name + str(index)


def escaped(text):
    return text.encode("unicode_escape").decode("ascii")


def numbered(sets):
    """Ids that occur twice get a number, as pytest gives them."""
    texts = [text for text, _ in sets]
    counts, made = {}, []
    for text, values in sets:
        if texts.count(text) > 1:
            number = counts.get(text, 0)
            counts[text] = number + 1
            text = "%s%s%d" % (text, "_" if text[-1:].isdigit() else "", number)  # noqa: UP031
        made.append((text, values))
    return made
