"""Which files are tests, by the conventions of languages that Redstart supports only through their reports."""

from __future__ import annotations

import pytest

from redstart.toolkit.languages.registry import find_test_language, is_test_path
from redstart.toolkit.patching.policy import Protection, find_protection

TESTS = {
    "pkg/shop_test.go": "Go",
    "pkg/testdata/total.golden": "Go",
    "tests/shop.rs": "Rust",
    "src/cart/tests.rs": "Rust",
    "src/test/java/com/shop/Totals.java": "Java",
    "app/TotalTest.java": "Java",
    "src/test/kotlin/Totals.kt": "Kotlin",
    "app/TotalTest.kt": "Kotlin",
    "Shop/TotalTests.cs": "C#",
    "Shop.Tests/Total.cs": "C#",
    "Shop.UnitTests/Total.cs": "C#",
    "spec/shop_spec.rb": "Ruby",
    "spec/spec_helper.rb": "Ruby",
    "test/shop_test.rb": "Ruby",
    "tests/Shop.php": "PHP",
    "src/ShopTest.php": "PHP",
    "t/shop.t": "Perl",
    "t/lib/Helper.pm": "Perl",
    "test/shop_test.exs": "Elixir",
    "Tests/ShopTests/Total.swift": "Swift",
    "src/shop_test.cc": "C++",
    "src/shop_unittest.cpp": "C++",
    "src/test_shop.c": "C",
    "tests/shop.c": "C",
    "test/shop_test.dart": "Dart",
    "src/test/scala/Totals.scala": "Scala",
    "app/ShopSpec.scala": "Scala",
}
SOURCES = (
    "shop.go",
    "src/lib.rs",
    "src/latest.rs",
    "app/Latest.java",
    "app/Contest.java",
    "Shop/Latest.cs",
    "lib/contest.rb",
    "src/specs/order.go",
    "src/Latest.php",
    "lib/Shop.pm",
    "bin/shop.pl",
    "lib/shop.ex",
    "Sources/Latest.swift",
    "src/attest.c",
    "lib/contest.dart",
    "app/Inspector.scala",
)


@pytest.mark.parametrize(("path", "language"), TESTS.items())
def test_test_file_is_recognized_and_protected(path, language):
    detected_language = find_test_language(path)
    assert (detected_language and detected_language.name, is_test_path(path), find_protection(path)) == (
        language,
        True,
        Protection.test,
    )


@pytest.mark.parametrize("path", SOURCES)
def test_source_file_is_not_a_test(path):
    assert (find_test_language(path), is_test_path(path), find_protection(path)) == (None, False, None)


def test_files_that_start_the_tests_are_protected():
    tests = ("run.sh", "Makefile", "*/Makefile", "*.mk")
    for path in ("run.sh", "makefile", "sub/Makefile", "rules/test.mk"):
        assert find_protection(path, (), tests) is Protection.starts_tests
    assert find_protection("lib/run.sh", (), tests) is None
