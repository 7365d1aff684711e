from logdigest import Record, busiest, error_rate


def record(path="/", status=200):
    return Record("GET", path, status, 1)


def test_busiest_first_then_by_name():
    records = [record("/b"), record("/a"), record("/c"), record("/c")]
    assert busiest(records, limit=2) == ["/c", "/a"]


def test_half_of_them_failed():
    assert error_rate([record(status=500), record(status=404)]) == 0.5


def test_no_records():
    assert error_rate([]) == 0.0
