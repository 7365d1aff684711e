def test_dump():
    with open("/dev/full", "w") as file:
        file.write("x" * 100)
