"""Judge whether a project's packages may be installed: at once, after a person's approval, or not at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from redstart.core.frozen import FrozenValue
from redstart.ports.install.port import PackageRefusal, Requirement
from redstart.toolkit.installs.manager import get_manager
from redstart.toolkit.installs.names import find_imitated, get_popular_names, hyphenate, normalize_name
from redstart.toolkit.installs.requested_packages import read

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
        names = ", ".join(dict.fromkeys(item.requirement.name for item in self.to_approve))
        return f"the program needs packages that are not on your allow list: {names}" if names else ""


def judge(files: Mapping[str, bytes], allow: Names, approved: Names) -> PackageJudgement:
    """Judge the requested packages by name alone, without a query to any index.

    `files` are the project's files by path; `allow` is the list in the settings, `approved` the packages that a person
    approved. A name on either list is allowed even if it looks like another. Neither list allows a package that does
    not come from the index.
    """
    requested = read(files)
    allowed: list[Requirement] = []
    to_approve: list[ToApprove] = []
    refused = list(requested.refused)
    own_names = {hyphenate(name) for name in requested.own_names}
    for item in requested.requirements:
        allowed_names = {
            normalize_name(name, item.language)
            for source in (allow, approved)
            for name in source.get(item.language, ())
        }
        if item.name in allowed_names or (not item.installed and item.name in BUILDERS):
            allowed.append(item)
        elif reason := explain_suspicion(item.name, item.language, own_names):
            refused.append(PackageRefusal(name=item.name, reason=reason))
        else:
            to_approve.append(ToApprove(requirement=item, reason=_explain_unknown(item)))
    return PackageJudgement(
        allowed=tuple(allowed),
        to_approve=tuple(to_approve),
        refused=tuple(dict.fromkeys(refused)),
        own=requested.own_names,
    )


def explain_suspicion(name: str, language: str, own_names: Collection[str] = ()) -> str:
    """Return why a package of this name must not be installed, as a sentence; empty if nothing is suspicious."""
    if name in get_popular_names(language):
        return ""
    if imitated_name := find_imitated(name, language):
        return f"{name} can be mistaken for {imitated_name}; if it is meant, add it to dependencies.allow."
    manager = get_manager(language)
    if manager.is_built_in(name):
        return f"{name} has the name of a part of {manager.owner} itself."
    if hyphenate(name) in own_names:
        return f"{name} has the project's own name."
    return ""


def _explain_unknown(requirement: Requirement) -> str:
    note = " It is widely used." if requirement.name in get_popular_names(requirement.language) else ""
    return f"{requirement.name} is not on the list of packages that are installed without asking.{note}"
