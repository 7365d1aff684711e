"""What a language says of a program that is new: its files, and the words in which it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten
from typing import NamedTuple, Protocol

from redstart.core.wishes import ProgramKind

_ABOUT = 200
PIPELINE = (
    "A data pipeline: reading, transforming and writing are functions of their own, and each can be tested on a few "
    "lines of data."
)


class NewProject(NamedTuple):
    """What is known of a new project."""

    package: str
    goal: str
    kind: ProgramKind | None = None
    language: str = "python"
    """By `Language.key`."""
    offers: tuple[str, ...] = ()
    """Packages besides the runner's that its tests may import."""

    @property
    def title(self) -> str:
        """Its name with hyphens."""
        return self.package.replace("_", "-")

    @property
    def about(self) -> str:
        """Its goal in a line."""
        return shorten(self.goal, _ABOUT, placeholder=" ...")


class ProjectFiles(NamedTuple):
    """What a new project holds before its program, in one language."""

    manifest: str
    """The name of the file that describes it."""
    description: str
    """The text of that file."""
    ignored: tuple[str, ...]
    """Lines of `.gitignore`."""
    install: str
    test: str
    """Commands."""
    use: str
    """How it is used, by its kind."""


class ProgramWords(NamedTuple):
    """Texts of questions. `{name}` stands for the program's name."""

    about: str
    """Which language it is; `{made_with}` stands for what it is made with."""
    alone: str
    """Made with no packages."""
    together: str
    """What it is made with besides packages."""
    kinds: Mapping[ProgramKind, str]
    starts: str
    """How a web application is started, to follow its description."""
    test_rules: str
    """How its tests are written; `{offers}` stands for the packages that they may import."""
    offer_rules: Mapping[str, str]
    """What is added where the tests may import this package."""
    part_tests: str
    """How the files of a part's tests begin; `{words}` stands for those of its goal."""
    test_example: str
    """Path of a file of tests."""
    runner: str
    """What the tests are written for."""
    imported: str
    """What a test imports."""
    first_test: str
    """Path of a small program's tests."""
    main: str
    """Path of a small program."""
    fence: str
    """What a block of code is marked with."""


class NewPrograms(Protocol):
    """How a program is begun in this language."""

    @property
    def runner(self) -> str:
        """What its tests run with."""
        ...

    @property
    def words(self) -> ProgramWords: ...

    @property
    def test_folder(self) -> str:
        """Where the user's own tests are put."""
        ...

    @property
    def offers(self) -> tuple[str, ...]:
        """Packages that are told to whoever writes tests, where they are there."""
        ...

    def files(self, project: NewProject) -> ProjectFiles:
        """The same project is described alike each time."""
        ...

    def is_test(self, path: str) -> bool:
        """Whether the runner finds tests in a file of this name."""
        ...
