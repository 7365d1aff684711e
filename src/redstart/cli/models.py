"""`redstart models` and `redstart models compare`."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options
from redstart.cli.options import EnvFile, use_env_file
from redstart.cli.output import echo, echo_json

if TYPE_CHECKING:
    from redstart.app.model_list import ListedEndpoint, ModelList, OfferedModel

MAX_SHOWN_MODELS = 12
"""Maximum number of models listed for one endpoint without --all."""
WIDEST = 100


app = typer.Typer(
    help="List the available models with price and context window, and compare two of them.", rich_markup_mode=None
)


@app.callback(invoke_without_command=True)
def models(
    ctx: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="List every model of each endpoint.")] = False,
    model: options.Model = None,
    env_file: EnvFile = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """List the available models with price and context window, and mark the ones that a run would use.

    Asks each endpoint for its list of models, but sends no prompt to a model. Prices are in dollars per million tokens.
    """
    if ctx.invoked_subcommand is not None:
        return
    import os

    from redstart.app.model_list import list_offered_models
    from redstart.app.settings import load

    folder = Path.cwd()
    use_env_file(env_file, folder)
    model_list = list_offered_models(load(model, project=folder), os.environ)
    if json:
        echo_json(model_list.model_dump_json(indent=2))
        return
    width = min(shutil.get_terminal_size().columns, WIDEST)
    for line in format_model_list(model_list, width, show_all=every):
        echo(line)


@app.command("compare", short_help="Compare two models on this repo's past bugs.")
def compare(
    a: Annotated[str, typer.Argument(help="A model, as for --model.")],
    b: Annotated[str, typer.Argument(help="Another model.")],
    path: Annotated[Path, typer.Argument(help="A directory in the git repo.")] = Path(),
    history: Annotated[
        int, typer.Option("--history", min=1, help="Play at most the N newest bugs of the history.")
    ] = 30,
    max_usd: Annotated[float, typer.Option("--max-usd", min=0, help="Spend at most N dollars in all.")] = 10.0,
    max_minutes: Annotated[float, typer.Option("--max-minutes", min=0, help="Take at most N minutes in all.")] = 240.0,
    name: Annotated[str, typer.Option("--name", help="Name of the comparison; another name starts anew.")] = "",
    python: options.Python = None,
    env_file: EnvFile = None,
    no_input: Annotated[bool, typer.Option("--no-input", help="Start without asking.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write an HTML page to this file.")
    ] = None,
) -> None:
    """Compare two models on past bugs of a repo: which one solves more, at what cost, and whether it may be chance.

    The bugs are commits that changed code and tests. The models see the commit message, but not the tests. The same
    command continues a comparison that was interrupted; nothing is played or paid twice.
    """
    from redstart.app.settings import load
    from redstart.cli.model_comparison import compare_models
    from redstart.evals.comparison_run import ComparisonRequest
    from redstart.evals.model_comparison import ComparisonLimits

    options.require_folder(path)
    use_env_file(env_file, path)
    request = ComparisonRequest(
        repo=path,
        models=(load(a, project=path), load(b, project=path)),
        history=history,
        limits=ComparisonLimits(usd=max_usd, minutes=max_minutes),
        name=name,
        python=python or "",
    )
    compare_models(request, can_ask=options.can_ask_user(silent=no_input), may_start=no_input, json=json, html=html)


def format_model_list(model_list: ModelList, width: int, *, show_all: bool) -> list[str]:
    lines: list[str] = []
    for endpoint in model_list.endpoints:
        lines += [*_format_endpoint(endpoint, width, show_all=show_all), ""]
    if model_list.missing:
        wrapped_names = textwrap.wrap(", ".join(model_list.missing), width - 9, break_on_hyphens=False)
        lines += [f"not set  {wrapped_names[0]}", *(f"{' ' * 9}{line}" for line in wrapped_names[1:])]
    if any("?" in line for line in lines):
        lines.append("?        unknown price or assumed window; set it in models.profiles")
    lines.append("always   manual (you answer), command:PROGRAM, replay:FILE")
    if model_list.plugins:
        lines.append(f"plug-ins {', '.join(f'{name}:MODEL' for name in model_list.plugins)}")
    if model_list.uses:
        host = f" at {model_list.host}" if model_list.host else ""
        return [*lines, f"\na run would use {model_list.uses}{host}; choose another with -m MODEL"]
    return [*lines, "\na run would use no model", *(f"  {line}" for line in model_list.remedy.splitlines())]


def _format_endpoint(endpoint: ListedEndpoint, width: int, *, show_all: bool) -> list[str]:
    key = f"key {endpoint.key_variable}" if endpoint.key_variable else "no key"
    origin = f" (set by {endpoint.origin})" if endpoint.origin else ""
    heading = f"{endpoint.provider} at {endpoint.host}{origin}, {key}"
    lines = textwrap.wrap(heading, width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    for text in filter(None, (endpoint.problem, endpoint.remedy)):
        lines += textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    ordered = sorted(endpoint.models, key=_rank)
    shown_models = ordered if show_all else ordered[:MAX_SHOWN_MODELS]
    names = max((len(item.name) for item in shown_models), default=0)
    if shown_models:
        lines.append(f"  {'':<8} {'model':<{names}}  {'in $':>7}  {'out $':>7}  {'window':>7}")
    lines += [_format_row(item, names) for item in shown_models]
    if hidden_count := len(ordered) - len(shown_models):
        lines.append(f"  {'':<8} … and {hidden_count:,} more: redstart models --all")
    return lines


def _rank(model: OfferedModel) -> tuple[bool, bool, bool, int]:
    """Return the sort key: models in use first, then known prices, known windows, and larger windows."""
    return not model.used, model.input_usd is None, not model.window_known, -model.window


def _format_row(model: OfferedModel, names: int) -> str:
    window = f"{_format_tokens(model.window)}{'' if model.window_known else '?'}"
    numbers = f"{_format_usd(model.input_usd):>7}  {_format_usd(model.output_usd):>7}  {window:>7}"
    return f"  {model.used:<8} {model.name:<{names}}  {numbers}{'' if model.listed else '  not listed by the endpoint'}"


def _format_usd(amount: float | None) -> str:
    return "?" if amount is None else "free" if amount == 0 else f"{amount:.2f}"


def _format_tokens(tokens: int) -> str:
    if tokens >= 1_000_000:
        return f"{tokens / 1_000_000:.3g}M"
    return f"{tokens // 1000}k"
