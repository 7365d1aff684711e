from payments import token


def test_token():
    assert token()
