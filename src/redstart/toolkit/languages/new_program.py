"""What a language provides for a new program: its initial files and the texts of the questions for the model."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten
from typing import NamedTuple, Protocol

from redstart.core.run_preferences import ProgramKind

_MAX_GOAL_CHARACTERS = 200
PIPELINE = (
    "A data pipeline: reading, transforming and writing are functions of their own, and each can be tested on a few "
    "lines of data."
)


class NewProject(NamedTuple):
    """The known facts about a new project."""

    package: str
    goal: str
    kind: ProgramKind | None = None
    language: str = "python"
    """A `Language.key`."""
    test_packages: tuple[str, ...] = ()
    """Packages, in addition to the runner's, that its tests may import."""

    @property
    def title(self) -> str:
        """The package name with hyphens."""
        return self.package.replace("_", "-")

    @property
    def about(self) -> str:
        """The goal, shortened to one line."""
        return shorten(self.goal, _MAX_GOAL_CHARACTERS, placeholder=" ...")


class ProjectFiles(NamedTuple):
    """The files and commands of a new project in one language, before its program is written."""

    manifest: str
    """The name of the file that describes the project."""
    description: str
    """The text of that file."""
    ignored: tuple[str, ...]
    """Lines of `.gitignore`."""
    install: str
    test: str
    """The commands that install the project and run its tests."""
    use: str
    """The command or code that uses the program, by its kind."""


class ProgramWords(NamedTuple):
    """Texts for questions to the model. `{name}` stands for the program's name."""

    description: str
    """Describes the language; `{made_with}` stands for the packages and modules that the program uses."""
    no_packages: str
    """Says that the program uses no packages."""
    standard_modules: str
    """What the program uses in addition to packages."""
    kinds: Mapping[ProgramKind, str]
    starts: str
    """How a web application is started; follows its description."""
    test_rules: str
    """How to write its tests; `{offers}` stands for the packages that they may import."""
    offer_rules: Mapping[str, str]
    """Rules that are added if the tests may import this package."""
    part_tests: str
    """How the names of a part's test files begin; `{words}` stands for the words of its goal."""
    test_example: str
    """Example path of a test file."""
    runner: str
    """The test framework that the tests use."""
    imported_module: str
    """The module that a test imports."""
    first_test: str
    """Path of the tests of a small program."""
    main: str
    """Path of a small program."""
    fence: str
    """The language tag of a fenced code block."""


class NewPrograms(Protocol):
    """How a new program starts in this language."""

    @property
    def runner(self) -> str:
        """The runner of its tests."""
        ...

    @property
    def texts(self) -> ProgramWords: ...

    @property
    def test_folder(self) -> str:
        """The directory for the user's own tests."""
        ...

    @property
    def test_packages(self) -> tuple[str, ...]:
        """Packages that the prompt for tests mentions if they are installed."""
        ...

    def build_files(self, project: NewProject) -> ProjectFiles:
        """Return the initial files of a project. The same project always gives the same files."""
        ...

    def is_test(self, path: str) -> bool:
        """Return whether the runner collects tests from a file of this name."""
        ...
