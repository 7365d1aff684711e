from store import users


def test_users():
    assert users() == ["ada", "grace"]


def test_no_user_twice():
    assert len(set(users())) == len(users())
