import feed


def test_fetch():
    assert feed.fetch()
