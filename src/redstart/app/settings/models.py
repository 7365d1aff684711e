"""Settings of the models: which models are asked, and how to reach each one."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from redstart.ports.model.port import Profile
from redstart.ports.model.tiers import ModelRoster


class StepModels(BaseModel):
    """The model for the question of each step: `fast`, `strong` or `provider:name`; empty for the step's usual tier."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    plan: str = ""
    audit: str = ""
    reproduce: str = ""
    patch: str = ""
    reflect: str = ""
    remember: str = ""


class ModelOptions(BaseModel):
    """How to reach and ask one model."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    base_url: str | None = None
    """Overrides `models.base_url`."""
    key_variable: str = ""
    """The variable that holds its key, if not its provider's usual one."""
    deadline: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Overrides `models.deadline`."""
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    """Overrides the temperature of each question."""
    max_tokens: int | None = Field(default=None, gt=0)
    """The maximum number of tokens of an answer, whatever the question allows."""
    at_once: int | None = Field(default=None, gt=0)
    """The maximum number of concurrent calls."""
    tokens_a_minute: int | None = Field(default=None, gt=0)
    """The maximum number of tokens per minute."""
    requests_a_minute: int | None = Field(default=None, gt=0)
    """The maximum number of calls per minute."""
    stall_warning: int | None = Field(default=None, ge=1)
    stall: int | None = Field(default=None, ge=1)
    """Like `limits.stall_warning` and `limits.stall`, for this model's patches; then the strong model, if any, writes.
    """


class Models(BaseModel):
    """Which models are asked, and how. `fast` defaults to `strong`."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    strong: str = ""
    """The model that writes the patches, as `provider:name`."""
    fast: str = ""
    """The model that plans and summarizes, as `provider:name`."""
    fallback: tuple[str, ...] = ()
    """Models to ask, in this order, if the chosen one gives no answer."""
    steps: StepModels = StepModels()
    escalate: int = Field(default=2, ge=0)
    """How many attempts the fast model has at a question before the strong one is asked; 0 for no limit."""
    base_url: str | None = None
    """The address of an OpenAI- or Anthropic-compatible endpoint, instead of the provider's own."""
    deadline: float = Field(default=300.0, gt=0, allow_inf_nan=False)
    """The time limit of one call, in seconds."""
    patience: float = Field(default=900.0, gt=0, allow_inf_nan=False)
    """The time limit of one question with all its calls and the waits between them, in seconds."""
    tries: int = Field(default=6, gt=0)
    """The maximum number of calls to one model for one question, if a failure may be temporary."""
    options: dict[str, ModelOptions] = {}
    """By `provider:name`: how to reach and ask that model."""
    profiles: dict[str, Profile] = {}
    """By `provider:name`, where `*` matches any letters: facts about that model, which override the built-in profile.
    """

    def get_model_options(self, name: str) -> ModelOptions:
        return self.options.get(name, ModelOptions())

    @property
    def roster(self) -> ModelRoster:
        """The choice of model for each question."""
        steps = {step: name for step, name in self.steps if name}
        return ModelRoster(self.fast, self.strong, self.fallback, steps, self.escalate)
