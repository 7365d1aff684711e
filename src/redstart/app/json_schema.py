"""JSON Schemas of the results that Redstart prints, which docs/reference publishes."""

from __future__ import annotations

import json

from pydantic import BaseModel


def render_json_schema(model: type[BaseModel]) -> str:
    """Render the JSON Schema of a printed value.

    It allows unknown fields, so that a new field does not break a reader that validates the value.
    """
    schema = model.model_json_schema(mode="serialization")
    for shape in (schema, *schema["$defs"].values()):
        shape.pop("additionalProperties", None)
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps({**draft, **schema}, indent=2) + "\n"
