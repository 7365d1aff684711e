from logdigest import Record, parse_line


def test_line():
    assert parse_line("GET /orders 200 35ms") == Record("GET", "/orders", 200, 35)


def test_query_and_slash_are_dropped():
    assert parse_line("GET /orders/?page=2 200 8ms").path == "/orders"


def test_root_stays():
    assert parse_line("GET / 200 1ms").path == "/"
