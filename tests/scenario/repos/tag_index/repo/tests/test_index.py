from tagindex import TagIndex, collect


def test_tags_keep_their_order():
    assert collect("#Garden and #soil, again #garden!", []) == ["garden", "soil"]


def test_words_that_are_no_tags():
    assert collect("plain words, a lone # and C#", []) == []


def test_goes_on_from_what_was_found():
    assert collect("#b #a", ["a"]) == ["a", "b"]


def test_each_note_has_its_own_tags():
    index = TagIndex()
    index.add("n1", "sow #beans")
    index.add("n2", "buy #flour")
    assert index.notes("beans") == ["n1"]
    assert index.notes("flour") == ["n2"]


def test_two_texts_share_nothing():
    collect("#north")
    assert "north" not in collect("#south")
