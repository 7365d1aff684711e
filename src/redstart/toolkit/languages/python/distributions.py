"""Facts about Python packages: their names, what they provide and how to install them."""

from __future__ import annotations

INSTALL_LOCATION = "in the environment that runs the tests"
NAME_PYTHON = "name a newer interpreter with --python"

DISTRIBUTIONS = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "git": "gitpython",
    "github": "pygithub",
    "google": "google-api-core",
    "grpc": "grpcio",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "kafka": "kafka-python",
    "ldap": "python-ldap",
    "magic": "python-magic",
    "MySQLdb": "mysqlclient",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "pkg_resources": "setuptools",
    "psycopg2": "psycopg2-binary",
    "pydantic_settings": "pydantic-settings",
    "pytest_mock": "pytest-mock",
    "rest_framework": "djangorestframework",
    "ruamel": "ruamel.yaml",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "socks": "pysocks",
    "usb": "pyusb",
    "websocket": "websocket-client",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
"""The package to install for a module whose name differs from the package's."""

_WELL_KNOWN = (
    "aiohttp alembic anthropic anyio arrow asyncpg babel black boto3 botocore cachetools celery certifi chardet click "
    "colorama cryptography cython dask datasets django duckdb fastapi faker flask freezegun gevent greenlet gunicorn "
    "h5py httpcore httpx hypothesis jinja2 joblib jsonschema langchain loguru lxml markdown marshmallow matplotlib "
    "mongoengine moto msgpack mypy mysql networkx nltk numba numpy openai openpyxl orjson packaging pandas paramiko "
    "peewee pendulum pexpect pika plotly polars psutil psycopg pyarrow pydantic pygments pymongo pymysql pyparsing "
    "pytz qdrant_client redis regex requests respx responses rich scipy scrapy seaborn selenium sentry_sdk setuptools "
    "simplejson sklearn spacy sqlalchemy sqlmodel starlette statsmodels streamlit sympy tabulate tenacity tensorflow "
    "tiktoken toml tomli torch torchvision tornado tqdm transformers trio twisted typer typing_extensions tzdata ujson "
    "urllib3 uvicorn uvloop websockets werkzeug wheel xmltodict zope"
)
WELL_KNOWN = frozenset(_WELL_KNOWN.split())
"""Modules that are not misspelled, even if a name of the project or the standard library is similar."""

NAMESPACES = frozenset({"azure", "backports", "google", "jaraco", "opentelemetry", "ruamel", "sphinxcontrib", "zope"})
"""Namespace packages whose parts are installed separately: a missing part is a missing package."""

SYSTEM_PARTS = {
    "_bz2": "libbz2",
    "_ctypes": "libffi",
    "_curses": "ncurses",
    "_lzma": "liblzma",
    "_sqlite3": "libsqlite3",
    "_ssl": "OpenSSL",
    "_tkinter": "Tk (Debian: python3-tk)",
    "tkinter": "Tk (Debian: python3-tk)",
}
"""Standard library modules that an interpreter may be built without, and the libraries that they need."""

FIXTURES = {
    "aioresponses": "aioresponses",
    "anyio_backend": "anyio",
    "benchmark": "pytest-benchmark",
    "cassette": "pytest-vcr",
    "data_regression": "pytest-regressions",
    "datadir": "pytest-datadir",
    "django_assert_num_queries": "pytest-django",
    "django_db_blocker": "pytest-django",
    "django_db_setup": "pytest-django",
    "django_user_model": "pytest-django",
    "event_loop": "pytest-asyncio",
    "faker": "faker",
    "file_regression": "pytest-regressions",
    "freezer": "pytest-freezer",
    "fs": "pyfakefs",
    "httpserver": "pytest-httpserver",
    "httpx_mock": "pytest-httpx",
    "live_server": "pytest-django",
    "mocker": "pytest-mock",
    "module_mocker": "pytest-mock",
    "nursery": "pytest-trio",
    "postgresql": "pytest-postgresql",
    "qtbot": "pytest-qt",
    "redisdb": "pytest-redis",
    "requests_mock": "requests-mock",
    "respx_mock": "respx",
    "script_runner": "pytest-console-scripts",
    "session_mocker": "pytest-mock",
    "snapshot": "syrupy",
    "subtests": "pytest-subtests",
    "transactional_db": "pytest-django",
    "unused_tcp_port": "pytest-asyncio",
    "vcr": "pytest-vcr",
    "worker_id": "pytest-xdist",
}
"""Fixtures of plugins, and the packages that provide them."""

GENERIC_FIXTURES = {
    "admin_client": "pytest-django",
    "client": "pytest-django",
    "db": "pytest-django",
    "rf": "pytest-django",
    "settings": "pytest-django",
}
"""Names that projects often give their own fixtures: they mean the plugin only if the project uses Django."""

MARKERS = {
    "anyio": "anyio",
    "asyncio": "pytest-asyncio",
    "benchmark": "pytest-benchmark",
    "django_db": "pytest-django",
    "flaky": "pytest-rerunfailures",
    "freeze_time": "pytest-freezer",
    "httpx_mock": "pytest-httpx",
    "order": "pytest-order",
    "timeout": "pytest-timeout",
    "trio": "pytest-trio",
    "vcr": "pytest-vcr",
    "xdist_group": "pytest-xdist",
}

OPTIONS = {
    "--asyncio-mode": "pytest-asyncio",
    "--benchmark": "pytest-benchmark",
    "--black": "pytest-black",
    "--cov": "pytest-cov",
    "--count": "pytest-repeat",
    "--create-db": "pytest-django",
    "--dist": "pytest-xdist",
    "--django": "pytest-django",
    "--ds": "pytest-django",
    "--durations-path": "pytest-split",
    "--flake8": "pytest-flake8",
    "--forked": "pytest-forked",
    "--html": "pytest-html",
    "--json-report": "pytest-json-report",
    "--mypy": "pytest-mypy",
    "--no-cov": "pytest-cov",
    "--numprocesses": "pytest-xdist",
    "--random-order": "pytest-random-order",
    "--randomly": "pytest-randomly",
    "--record-mode": "pytest-recording",
    "--reruns": "pytest-rerunfailures",
    "--reuse-db": "pytest-django",
    "--snapshot": "syrupy",
    "--splits": "pytest-split",
    "--timeout": "pytest-timeout",
    "--xdoctest": "xdoctest",
    "-n": "pytest-xdist",
}
"""Prefixes of plugin options, and the packages that provide them."""

SETTINGS = {
    "anyio": "anyio",
    "asyncio": "pytest-asyncio",
    "DJANGO": "pytest-django",
    "django": "pytest-django",
    "env": "pytest-env",
    "mock": "pytest-mock",
    "timeout": "pytest-timeout",
    "xdist": "pytest-xdist",
}
"""Prefixes of pytest settings that a plugin reads, and the packages that provide it."""

PROGRAMS = ("bash", "cat", "curl", "docker", "git", "make", "node", "npm", "pip", "python", "python3", "pytest", "sh")
"""A missing program whose name is similar to one of these is a spelling mistake."""

_ZONES = (
    "UTC GMT Etc/UTC Europe/London Europe/Berlin Europe/Paris Europe/Madrid Europe/Rome Europe/Amsterdam Europe/Vienna "
    "Europe/Zurich Europe/Brussels Europe/Dublin Europe/Lisbon Europe/Stockholm Europe/Oslo Europe/Copenhagen "
    "Europe/Helsinki Europe/Warsaw Europe/Prague Europe/Budapest Europe/Athens Europe/Kiev Europe/Kyiv Europe/Istanbul "
    "Europe/Moscow America/New_York America/Chicago America/Denver America/Los_Angeles America/Phoenix America/Toronto "
    "America/Vancouver America/Halifax America/Anchorage America/Mexico_City America/Bogota America/Lima "
    "America/Santiago America/Sao_Paulo America/Argentina/Buenos_Aires America/Caracas US/Eastern US/Central "
    "US/Mountain US/Pacific Asia/Tokyo Asia/Seoul Asia/Shanghai Asia/Hong_Kong Asia/Singapore Asia/Kolkata "
    "Asia/Calcutta Asia/Dubai Asia/Karachi Asia/Kathmandu Asia/Tehran Asia/Bangkok Asia/Jakarta Asia/Manila "
    "Asia/Jerusalem Asia/Riyadh Asia/Taipei Africa/Cairo Africa/Johannesburg Africa/Lagos Africa/Nairobi "
    "Australia/Sydney Australia/Melbourne Australia/Brisbane Australia/Perth Australia/Adelaide Australia/Lord_Howe "
    "Pacific/Auckland Pacific/Honolulu Pacific/Apia Atlantic/Reykjavik"
)
ZONES = frozenset(_ZONES.split())
"""Time zones that exist in any installed time zone data."""


def install(package: str) -> str:
    return f"pip install {package} {INSTALL_LOCATION}"


def install_with(python: str, remedy: str) -> str:
    """Turn a remedy that installs something into a command for this interpreter; leave any other unchanged."""
    if not python or not remedy.startswith("pip install "):
        return remedy
    return f"{python} -m {remedy.removesuffix(f' {INSTALL_LOCATION}')}"
