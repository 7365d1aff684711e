def test_engine():
    import engine

    assert engine
