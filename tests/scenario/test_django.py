"""Whole runs on a Django project in its own environment, without pytest."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support.scenarios import CARD, parse_question
from support.server import ScriptedServer, Wire

DJANGO = "5.2.19"
RED = "cart.tests.TotalTests.test_counts_quantities"
FIX = """
WHY: the quantity is ignored

cart/models.py
<<<<<<< SEARCH
    return sum(item.cents for item in Item.objects.all())
=======
    return sum(item.cents * item.quantity for item in Item.objects.all())
>>>>>>> REPLACE
"""
FILES = {
    "manage.py": """
        import os
        import sys

        from django.core.management import execute_from_command_line

        if __name__ == "__main__":
            os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
            execute_from_command_line(sys.argv)
        """,
    "shop/__init__.py": "",
    "shop/settings.py": """
        SECRET_KEY = "for tests alone"
        INSTALLED_APPS = ["cart"]
        DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
        DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
        USE_TZ = True
        """,
    "cart/__init__.py": "",
    "cart/models.py": """
        from django.db import models


        class Item(models.Model):
            name = models.CharField(max_length=50)
            cents = models.IntegerField()
            quantity = models.IntegerField(default=1)


        def total():
            return sum(item.cents for item in Item.objects.all())
        """,
    "cart/tests.py": """
        from django.test import TestCase, TransactionTestCase

        from cart.models import Item, total


        class TotalTests(TestCase):
            @classmethod
            def setUpTestData(cls):
                Item.objects.create(name="tea", cents=250, quantity=2)
                Item.objects.create(name="cup", cents=900)

            def test_counts_quantities(self):
                self.assertEqual(total(), 1400)

            def test_two_items(self):
                self.assertEqual(Item.objects.count(), 2)


        class EmptyTests(TransactionTestCase):
            def test_nothing(self):
                self.assertEqual(total(), 0)
        """,
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Path:
    """Create a project's environment with Django and without pytest."""
    folder = tmp_path_factory.mktemp("django") / "venv"
    uv = shutil.which("uv")
    assert uv, "uv is needed to make the environment"
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder)], check=True)
    pip_arguments = ["--python", str(folder / "bin" / "python"), f"django=={DJANGO}"]
    subprocess.run([uv, "pip", "install", "-q", "--compile-bytecode", *pip_arguments], check=True)
    return folder


@pytest.fixture
def shop(tmp_path) -> Path:
    repo = tmp_path / "projects" / "shop"
    for name, text in FILES.items():
        path = repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"))
    return repo


@pytest.mark.parametrize("command", [(), ("--test-cmd", "python manage.py test cart --parallel 2 --failfast")])
def test_django_tests_are_fixed_in_their_own_environment(command, user, environment, shop):
    user.environ["VIRTUAL_ENV"] = str(environment)
    with ScriptedServer(lambda request: CARD if parse_question(request) == "remember" else FIX) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", shop, "--json", *command)
    assert (result.code, result.ending["result"]) == (0, "verified"), result.out + result.err
    reproduce_event = next(event for event in result.events if event["name"] == "reproduce" and event["phase"] == "end")
    assert reproduce_event["data"]["targets"] == [RED]
    assert (reproduce_event["data"]["red"], reproduce_event["data"]["passed"]) == (1, 2)


def test_unreachable_server_is_an_environment_problem_with_commands(user, environment, shop):
    (shop / "cart/apps.py").write_text("import socket\n\nsocket.create_connection(('127.0.0.1', 5432), 1)\n")
    settings = shop / "shop/settings.py"
    settings.write_text(settings.read_text().replace('["cart"]', '["cart.apps.CartConfig"]'))
    user.environ |= {"VIRTUAL_ENV": str(environment), "REDSTART_MODELS__STRONG": "manual"}
    result = user.redstart("fix", shop, "--json", "--no-input")
    assert (result.code, result.ending["result"]) == (3, "environment"), result.out + result.err
    reason = result.ending["reason"]
    assert reason.startswith("refused connection: [Errno 111] Connection refused. What to do: start the server")
    assert "REDSTART_SANDBOX__SERVICES='[\"127.0.0.1:PORT\"]' redstart fix" in reason
