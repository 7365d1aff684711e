import urllib.request


def test_mirror_answers():
    with urllib.request.urlopen("http://mirror.example.org/index", timeout=5) as answer:
        assert answer.status == 200
