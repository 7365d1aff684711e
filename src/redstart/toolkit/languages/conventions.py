"""Languages whose tests Redstart runs by a command and a JUnit report. It knows only their file names."""

from __future__ import annotations

import re

from redstart.toolkit.languages.protocol import Language

_DIRECTORY = re.compile(r"(?:^|/)tests?/", re.IGNORECASE)


class _Convention(Language):
    """A language known by its file names. `tests` is case-sensitive: a class `Latest` is not a test."""

    def __init__(self, name: str, suffixes: str, tests: str, programs: str = "", build: str = "") -> None:
        self.name, self.suffixes, self._tests = name, tuple(suffixes.split()), re.compile(tests)
        self.programs, self.build_files = tuple(map(re.escape, programs.split())), tuple(build.split())

    def is_test_path(self, path: str) -> bool:
        return bool(self._tests.search(path)) or (path.endswith(self.suffixes) and bool(_DIRECTORY.search(path)))


class _Rust(_Convention):
    def list_inline_tests(self, data: bytes) -> tuple[str, ...]:
        from redstart.toolkit.languages.rust import find_tests

        return tuple(find_tests(data.decode(errors="replace")))


CONVENTIONS: tuple[Language, ...] = (
    _Convention("Go", ".go", r"_test\.go$|(?:^|/)testdata/", "go gotestsum", "go.mod go.sum go.work"),
    _Rust(
        "Rust",
        ".rs",
        r"(?:^|/|_)tests?\.rs$|(?:^|/)test_[^/]*\.rs$",
        "cargo cargo-nextest",
        "Cargo.toml Cargo.lock build.rs",
    ),
    _Convention(
        "Java",
        ".java",
        r"(?:^|/)(?:Test[A-Z]\w*|\w*(?:Tests?|TestCase|IT|ITCase))\.java$",
        "mvn mvnw gradle gradlew java ant",
        "pom.xml mvnw build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradlew gradle.properties",
    ),
    _Convention("Kotlin", ".kt .kts", r"(?:^|/)\w*(?:Tests?|Spec)\.kts?$", "kotlin kotlinc"),
    _Convention(
        "C#",
        ".cs",
        r"(?:^|/)\w*Tests?\.cs$|(?:^|/)[^/]*\.(?:[A-Z]\w*)?Tests?/",
        "dotnet mono",
        "*.csproj *.sln *.slnx Directory.Build.props Directory.Build.targets global.json *.runsettings",
    ),
    _Convention(
        "Ruby",
        ".rb",
        r"(?:_spec|_test)\.rb$|(?:^|/)test_[^/]*\.rb$|(?:^|/)spec/.*\.rb$",
        "ruby rake rspec bundle minitest",
        "Rakefile rakefile *.rake .rspec Gemfile Gemfile.lock",
    ),
    _Convention(
        "PHP",
        ".php .phpt",
        r"Tests?\.php$|\.phpt$",
        "php phpunit pest composer",
        "composer.json composer.lock phpunit.xml phpunit.xml.dist phpunit.dist.xml",
    ),
    _Convention(
        "Perl",
        ".pl .pm .t",
        r"\.t$|(?:^|/)x?t/.*\.(?:t|pl|pm)$",
        "perl prove",
        "Makefile.PL Build.PL dist.ini .proverc cpanfile",
    ),
    _Convention("Elixir", ".ex .exs", r"_test\.exs$|(?:^|/)test_helper\.exs$", "mix elixir", "mix.exs mix.lock"),
    _Convention("Swift", ".swift", r"(?:^|/)\w*Tests?\.swift$", "swift xcodebuild", "Package.swift *.xctestplan"),
    _Convention(
        "C++",
        ".cc .cpp .cxx .hpp .hh .hxx",
        r"(?:_test|_tests|_unittest|Test|Tests)\.(?:cc|cpp|cxx|hpp|hh|hxx)$"
        r"|(?:^|/)test_[^/]*\.(?:cc|cpp|cxx|hpp|hh|hxx)$",
        "ctest cmake meson ninja",
        "CMakeLists.txt CMakePresets.json CTestConfig.cmake *.cmake meson.build *.ninja",
    ),
    _Convention("C", ".c .h", r"(?:_test|_tests|_unittest)\.[ch]$|(?:^|/)test_[^/]*\.[ch]$", ""),
    _Convention("Dart", ".dart", r"_test\.dart$", "dart flutter", "pubspec.yaml pubspec.lock dart_test.yaml"),
    _Convention("Scala", ".scala .sc", r"(?:^|/)\w*(?:Test|Tests|Spec|Suite)\.scala$", "sbt scala mill", "*.sbt"),
)
"""The languages, in no particular order."""
