"""Render a history as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from redstart.app.page import escape_name, read_page_file, render_document
from redstart.app.verify.history.counts import is_judged
from redstart.app.verify.history.summary import (
    COLUMN_MEANINGS,
    COLUMNS,
    NO_AGENT,
    NoteworthyChange,
    NoteworthySection,
    list_counts,
    list_noteworthy,
    list_obstacles,
)
from redstart.core.history import ChangeGroup, ChangeHistory, MergedChange

MOST_DETAILS = 5
"""Tests or files listed of each change."""


def render_history(history: ChangeHistory) -> str:
    """Render the page. It has no script, and every text of the repo is escaped."""
    title = f"Changes of {history.repo}"
    extent = (
        f"{history.head.name} ({history.head.commit[:8]}) since {history.since} · level {history.level.value}"
        f" · Redstart {history.redstart}"
    )
    first, *rest = history.summary
    summary = "".join(f"<p>{escape(line)}</p>" for line in rest)
    body = [
        f'<header><h1>{escape_name(title)}</h1><p class="note">{escape_name(extent)}</p></header>',
        f'<section class="summary"><p class="lead">{escape(first)}</p>{summary}</section>',
    ]
    if history.changes:
        body.append(f"<section><h2>By author</h2>{_render_groups('author', history.authors)}</section>")
        if any(group.name for group in history.agents):
            body.append(f"<section><h2>By agent</h2>{_render_groups('agent', history.agents)}</section>")
        body.append(_render_meanings())
        body += [_render_section(section) for section in list_noteworthy(history)]
        body += _render_obstacles(list_obstacles(history))
        body.append(f"<section>{_render_changes(history.changes)}</section>")
    return render_document(title, body, styles=read_page_file(__name__.rpartition(".")[0], "history.css"))


def name_group(group: ChangeGroup, kind: str) -> str:
    """Name the author or agent."""
    if kind == "agent":
        return group.name or NO_AGENT
    return f"{group.name} (bot)" if group.bot and not group.name.endswith("[bot]") else group.name


def _render_groups(kind: str, groups: Sequence[ChangeGroup]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in (kind, *COLUMNS))
    lines = "".join(
        f'<tr><th scope="row">{escape_name(name_group(group, kind))}</th>'
        + "".join(map(_render_count, list_counts(group.counts), COLUMNS))
        + "</tr>"
        for group in groups
    )
    return f'<div class="wide"><table class="groups"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'


def _render_count(count: int, title: str) -> str:
    return f'<td data-name="{escape(title)}"{"" if count else " class=none"}>{count:,}</td>'


def _render_meanings() -> str:
    items = "".join(f"<li><b>{escape(name)}</b>: {escape(meaning)}</li>" for name, meaning in COLUMN_MEANINGS)
    return f'<ul class="meanings">{items}</ul>'


def _render_section(section: NoteworthySection) -> str:
    items = "".join(map(_render_noteworthy, section.changes))
    return (
        f"<section><h2>{escape(section.title)} <small>{len(section.changes):,}</small></h2>"
        f'<p class="note">{escape(section.meaning)}</p><ul class="listed">{items}</ul></section>'
    )


def _render_noteworthy(item: NoteworthyChange) -> str:
    details = "".join(f"<li>{escape_name(text)}</li>" for text in item.details[:MOST_DETAILS])
    more = len(item.details) - MOST_DETAILS
    details += f"<li>and {more:,} more</li>" if more > 0 else ""
    change = item.change
    return (
        f"<li><b>{escape_name(change.subject)}</b>"
        f"<small><code>{change.commit[:8]}</code> · {change.date} · {escape_name(_name_author(change))}</small>"
        f"<ul>{details}</ul></li>"
    )


def _render_obstacles(obstacles: Sequence[str]) -> list[str]:
    if not obstacles:
        return []
    items = "".join(f"<li>{escape_name(text)}</li>" for text in obstacles)
    return [f'<section><h2>Cannot run here</h2><ul class="listed">{items}</ul></section>']


def _render_changes(changes: Sequence[MergedChange]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in ("date", "commit", "verdict", "change"))
    lines = "".join(
        f"<tr><td>{change.date}</td><td><code>{change.commit[:8]}</code></td><td>{_name_end(change)}</td>"
        f'<th scope="row">{escape_name(change.subject)}<small>{escape_name(_name_author(change))}</small></th></tr>'
        for change in changes
    )
    table = f'<table class="changes"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>'
    return f'<details><summary>Every change ({len(changes):,})</summary><div class="wide">{table}</div></details>'


def _name_author(change: MergedChange) -> str:
    return f"{change.author} with {', '.join(change.agents)}" if change.agents else change.author


def _name_end(change: MergedChange) -> str:
    if change.end is None:
        return "not examined"
    if change.no_test_ran:
        return "no test ran"
    return change.end.value if is_judged(change) else "cannot run"
