"""Static checks that flag patches that game the tests."""
