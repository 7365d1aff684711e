"""Lessons known to help are exported as a file that other agents read."""

from __future__ import annotations

from pathlib import Path

import pytest

from redstart.app.lessons import write_skill
from redstart.core.errors import ConfigError
from redstart.core.lesson import LessonStatus
from redstart.testing.states import make_lesson


def test_only_helpful_lessons_are_written_and_directory_names_the_skill(tmp_path: Path):
    helpful = make_lesson(
        when="a price is None", advice="fall back on the value", status=LessonStatus.active, reason="+30 points"
    )
    other_lessons = [
        make_lesson(f"lesson-{item}", advice=f"never told: {item}", status=item)
        for item in LessonStatus
        if item != "active"
    ]
    file = write_skill([helpful, *other_lessons], tmp_path / "skills" / "shop")
    assert file == tmp_path / "skills" / "shop" / "SKILL.md"
    assert file.read_text() == (
        "---\nname: shop\ndescription: Lessons for work on shop, each measured to help.\n---\n\n"
        "# What helped in shop\n\n## When a price is None\n\nfall back on the value\n\n"
        f"(+30 points; from run {helpful.provenance.run})\n"
    )


def test_unwritable_path_is_reported(tmp_path: Path):
    (tmp_path / "shop").write_text("a file")
    with pytest.raises(ConfigError, match=r"SKILL\.md cannot be written: File exists") as error_info:
        write_skill([make_lesson(status=LessonStatus.active)], tmp_path / "shop")
    assert error_info.value.remedy == "choose another directory"


def test_nothing_is_written_without_a_helpful_lesson(tmp_path: Path):
    with pytest.raises(ConfigError, match="no lesson is measured to help yet"):
        write_skill([make_lesson()], tmp_path / "shop")
    assert not (tmp_path / "shop").exists()
