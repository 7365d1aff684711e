"""Judge whether a project's packages may be installed: at once, after a person's approval, or not at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from redstart.core.noun import FrozenValue
from redstart.ports.install.port import PackageRefusal, Requirement
from redstart.toolkit.installs.asked import read
from redstart.toolkit.installs.manager import manager_of
from redstart.toolkit.installs.names import hyphenated, imitated, normal, popular

BUILDERS = frozenset({"setuptools", "wheel", "hatchling", "flit-core", "poetry-core", "pdm-backend", "uv-build"})
"""Build backends that a project may name in addition to the allowed packages."""

Names = Mapping[str, Collection[str]]
"""Names of packages by language."""


class ToApprove(FrozenValue):
    requirement: Requirement
    reason: str
    """A sentence for a person."""


class PackageJudgement(FrozenValue):
    """The judgement of each requested package. Each is in exactly one of the first three groups."""

    allowed: tuple[Requirement, ...] = ()
    to_approve: tuple[ToApprove, ...] = ()
    refused: tuple[PackageRefusal, ...] = ()
    own: tuple[str, ...] = ()
    """The project's own names, which no package may take."""

    @property
    def question(self) -> str:
        """The question to a person; empty if there is nothing to ask."""
        named = ", ".join(dict.fromkeys(item.requirement.name for item in self.to_approve))
        return f"the program needs packages that are not on your allow list: {named}" if named else ""


def judge(files: Mapping[str, bytes], allow: Names, approved: Names) -> PackageJudgement:
    """Judge the requested packages by name alone, without a query to any index.

    `files` are the project's files by path; `allow` is the list in the settings, `approved` the packages that a person
    approved. A name on either list is allowed even if it looks like another. Neither list allows a package that does
    not come from the index.
    """
    asked = read(files)
    allowed: list[Requirement] = []
    to_approve: list[ToApprove] = []
    refused = list(asked.refused)
    own = {hyphenated(name) for name in asked.own}
    for item in asked.requirements:
        named = {normal(name, item.language) for source in (allow, approved) for name in source.get(item.language, ())}
        if item.name in named or (not item.installed and item.name in BUILDERS):
            allowed.append(item)
        elif reason := suspicion(item.name, item.language, own):
            refused.append(PackageRefusal(name=item.name, reason=reason))
        else:
            to_approve.append(ToApprove(requirement=item, reason=_unknown(item)))
    return PackageJudgement(
        allowed=tuple(allowed),
        to_approve=tuple(to_approve),
        refused=tuple(dict.fromkeys(refused)),
        own=asked.own,
    )


def suspicion(name: str, language: str, own: Collection[str] = ()) -> str:
    """Return why a package of this name must not be installed, as a sentence; empty if nothing is suspicious."""
    if name in popular(language):
        return ""
    if like := imitated(name, language):
        return f"{name} can be mistaken for {like}; if it is meant, add it to dependencies.allow."
    manager = manager_of(language)
    if manager.is_built_in(name):
        return f"{name} has the name of a part of {manager.owner} itself."
    if hyphenated(name) in own:
        return f"{name} has the project's own name."
    return ""


def _unknown(one: Requirement) -> str:
    known = " It is widely used." if one.name in popular(one.language) else ""
    return f"{one.name} is not on the list of packages that are installed without asking.{known}"
