"""Settings of the models: which are asked, and how each is reached."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from redstart.ports.model.port import Profile
from redstart.ports.model.tiers import ModelRoster


class StepModels(BaseModel):
    """Whom the question of a step goes to: `fast`, `strong` or `provider:name`; empty for the step's usual tier."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    plan: str = ""
    audit: str = ""
    reproduce: str = ""
    patch: str = ""
    reflect: str = ""
    remember: str = ""


class ModelOptions(BaseModel):
    """How one model is reached and asked."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    base_url: str | None = None
    """Instead of `models.base_url`."""
    key_variable: str = ""
    """The variable that holds its key, if not its provider's usual one."""
    deadline: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Instead of `models.deadline`."""
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    """Instead of what each question says."""
    max_tokens: int | None = Field(default=None, gt=0)
    """The most tokens of an answer, whatever the question allows."""
    at_once: int | None = Field(default=None, gt=0)
    """The most calls at a time."""
    tokens_a_minute: int | None = Field(default=None, gt=0)
    """The most tokens in any minute."""
    requests_a_minute: int | None = Field(default=None, gt=0)
    """The most calls in any minute."""
    stall_warning: int | None = Field(default=None, ge=1)
    stall: int | None = Field(default=None, ge=1)
    """As `limits.stall_warning` and `limits.stall`, of what it wrote; then the strong model writes, if there is one."""


class Models(BaseModel):
    """Which models are asked, and how. `fast` defaults to `strong`."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    strong: str = ""
    """`provider:name`; writes the patches."""
    fast: str = ""
    """`provider:name`; plans and sums up."""
    fallback: tuple[str, ...] = ()
    """Models that are asked, in this order, where the chosen one gives no answer."""
    steps: StepModels = StepModels()
    escalate: int = Field(default=2, ge=0)
    """Attempts that the fast model has at a question, before the strong one is asked; 0 for no end."""
    base_url: str | None = None
    """Address of an OpenAI- or Anthropic-compatible endpoint, instead of the provider's own."""
    deadline: float = Field(default=300.0, gt=0, allow_inf_nan=False)
    """Seconds that one call may take."""
    patience: float = Field(default=900.0, gt=0, allow_inf_nan=False)
    """Seconds that one question may take with all its calls and the waits between them."""
    tries: int = Field(default=6, gt=0)
    """Calls of one question to one model, where what fails may pass."""
    options: dict[str, ModelOptions] = {}
    """By `provider:name`: how that model is reached and asked."""
    profiles: dict[str, Profile] = {}
    """By `provider:name`, `*` standing for any letters: what is known of that model, over what is shipped."""

    def option(self, name: str) -> ModelOptions:
        return self.options.get(name, ModelOptions())

    @property
    def roster(self) -> ModelRoster:
        """Who is asked what."""
        steps = {step: name for step, name in self.steps if name}
        return ModelRoster(self.fast, self.strong, self.fallback, steps, self.escalate)
