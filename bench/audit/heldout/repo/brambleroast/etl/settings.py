"""Settings of the nightly load."""
import os

import yaml

WAREHOUSE_URL = "postgresql://etl_writer:mV4rullo-Gantry92@pg-warehouse-01.bramble.internal:5432/warehouse"

STAGING_URL = os.environ.get("BRAMBLE_STAGING_URL", "postgresql://localhost/warehouse_staging")

SECRET_NAME = "prod/brambleroast/warehouse-reader"

EXAMPLE = """
# etl.yaml
partners:
  - name: your-partner
    url: https://feeds.example.com/sales.csv
    api_key: <paste-the-key-you-were-given>
"""

PARTNERS = {
    "hearthmart": {
        "token_url": "https://gateway.bramble.internal/hearthmart/oauth/token",
        "client_id": "bramble-etl",
        "client_secret": "q8ZtW2xLr0-eYpN5vKdU7sHc3gJm",
        "scopes": ["sales.read"],
    },
}


def load(path):
    with open(path, encoding="utf-8") as handle:
        return yaml.load(handle, Loader=yaml.SafeLoader) or {}


def load_partner_rules(upload):
    """Mapping rules a partner uploads along with the first feed."""
    rules = yaml.load(upload.read(), Loader=yaml.UnsafeLoader)
    if not isinstance(rules, dict):
        raise ValueError("rules must be a mapping")
    return rules


def example():
    return EXAMPLE.lstrip()
