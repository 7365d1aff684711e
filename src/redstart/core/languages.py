"""Languages that tests are written in, by the names of their files.

It lies here because several kits of the toolkit need it, and these do not import one another.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple

from redstart.core.scripts import SUFFIXES as SCRIPT_SUFFIXES

PYTHON, JAVASCRIPT = "Python", "JavaScript"
ALTERABLE = (PYTHON, JAVASCRIPT)
"""Languages whose tests Redstart can alter, to see that they can still fail."""
_FOLDERS = frozenset({"test", "tests"})


class Convention(NamedTuple):
    """How the files of a language are called, and its tests among them."""

    suffixes: tuple[str, ...]
    tests: re.Pattern[str]
    """Of a path whose case is as written: a class `Latest` is no test."""
    programs: tuple[str, ...] = ()
    """What starts its tests, or runs a script in it."""
    build: tuple[str, ...] = ()
    """Globs of file names that say how its tests are built and started."""


def _convention(suffixes: str, tests: str, programs: str, build: str = "") -> Convention:
    return Convention(tuple(suffixes.split()), re.compile(tests), tuple(programs.split()), tuple(build.split()))


CONVENTIONS = {
    "Go": _convention(".go", r"_test\.go$|(?:^|/)testdata/", "go gotestsum", "go.mod go.sum go.work"),
    "Rust": _convention(
        ".rs", r"(?:^|/|_)tests?\.rs$|(?:^|/)test_[^/]*\.rs$", "cargo cargo-nextest", "Cargo.toml Cargo.lock build.rs"
    ),
    "Java": _convention(
        ".java",
        r"(?:^|/)(?:Test[A-Z]\w*|\w*(?:Tests?|TestCase|IT|ITCase))\.java$",
        "mvn mvnw gradle gradlew java ant",
        "pom.xml mvnw build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradlew gradle.properties",
    ),
    "Kotlin": _convention(".kt .kts", r"(?:^|/)\w*(?:Tests?|Spec)\.kts?$", "kotlin kotlinc"),
    "C#": _convention(
        ".cs",
        r"(?:^|/)\w*Tests?\.cs$|(?:^|/)[^/]*\.(?:[A-Z]\w*)?Tests?/",
        "dotnet mono",
        "*.csproj *.sln *.slnx Directory.Build.props Directory.Build.targets global.json *.runsettings",
    ),
    "Ruby": _convention(
        ".rb",
        r"(?:_spec|_test)\.rb$|(?:^|/)test_[^/]*\.rb$|(?:^|/)spec/.*\.rb$",
        "ruby rake rspec bundle minitest",
        "Rakefile rakefile *.rake .rspec Gemfile Gemfile.lock",
    ),
    "PHP": _convention(
        ".php .phpt",
        r"Tests?\.php$|\.phpt$",
        "php phpunit pest composer",
        "composer.json composer.lock phpunit.xml phpunit.xml.dist phpunit.dist.xml",
    ),
    "Perl": _convention(
        ".pl .pm .t",
        r"\.t$|(?:^|/)x?t/.*\.(?:t|pl|pm)$",
        "perl prove",
        "Makefile.PL Build.PL dist.ini .proverc cpanfile",
    ),
    "Elixir": _convention(".ex .exs", r"_test\.exs$|(?:^|/)test_helper\.exs$", "mix elixir", "mix.exs mix.lock"),
    "Swift": _convention(".swift", r"(?:^|/)\w*Tests?\.swift$", "swift xcodebuild", "Package.swift *.xctestplan"),
    "C++": _convention(
        ".cc .cpp .cxx .hpp .hh .hxx",
        r"(?:_test|_tests|_unittest|Test|Tests)\.(?:cc|cpp|cxx|hpp|hh|hxx)$"
        r"|(?:^|/)test_[^/]*\.(?:cc|cpp|cxx|hpp|hh|hxx)$",
        "ctest cmake meson ninja",
        "CMakeLists.txt CMakePresets.json CTestConfig.cmake *.cmake meson.build *.ninja",
    ),
    "C": _convention(".c .h", r"(?:_test|_tests|_unittest)\.[ch]$|(?:^|/)test_[^/]*\.[ch]$", ""),
    "Dart": _convention(".dart", r"_test\.dart$", "dart flutter", "pubspec.yaml pubspec.lock dart_test.yaml"),
    "Scala": _convention(".scala .sc", r"(?:^|/)\w*(?:Test|Tests|Spec|Suite)\.scala$", "sbt scala mill", "*.sbt"),
}
"""Languages whose tests Redstart runs by a command and a JUnit report, in no order."""


def language_of_test(path: str) -> str:
    """The language of a test file whose name or folder says that it is one; empty for others.

    Of Python and JavaScript, the kits that run their tests know more.
    """
    for name, convention in CONVENTIONS.items():
        if convention.tests.search(path):
            return name
    pure = PurePosixPath(path)
    language = language_of_file(path)
    is_inside = not _FOLDERS.isdisjoint(part.casefold() for part in pure.parts[:-1])
    return language if is_inside and language not in ALTERABLE else ""


def language_of_file(path: str) -> str:
    """The language that a file is written in, by the end of its name; empty for one that is not known."""
    if path.endswith((".py", ".pyi", ".pyw")):
        return PYTHON
    if path.endswith(SCRIPT_SUFFIXES):
        return JAVASCRIPT
    return next((name for name, convention in CONVENTIONS.items() if path.endswith(convention.suffixes)), "")
