from staticpaths import content_type, is_hidden, resolve


def test_file_in_a_folder():
    assert resolve("/srv/www", "/css/site.css") == "/srv/www/css/site.css"


def test_dots_inside_the_root_are_fine():
    assert resolve("/srv/www", "/css/../index.html") == "/srv/www/index.html"


def test_the_root_itself():
    assert resolve("/srv/www", "/") == "/srv/www"


def test_address_that_leads_out():
    assert resolve("/srv/www", "/../secrets.txt") is None


def test_neighbour_with_the_same_beginning_is_outside():
    assert resolve("/srv/www", "/../www-old/index.html") is None


def test_hidden_folder():
    assert is_hidden("/srv/www/.git/config")
    assert not is_hidden("/srv/www/a.b/c.css")


def test_content_type_goes_by_the_last_suffix():
    assert content_type("/srv/www/site.tar.GZ") == "application/gzip"
    assert content_type("/srv/www.css/readme") == "application/octet-stream"
