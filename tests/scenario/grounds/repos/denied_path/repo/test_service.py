import service


def test_install():
    service.install()
