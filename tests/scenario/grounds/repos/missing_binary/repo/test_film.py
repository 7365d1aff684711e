from film import length


def test_length():
    assert length("a.mp4") == 3.0
