from ledger.entry import Entry
from ledger.money import show


class Account:
    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: list[Entry] = []

    def book(self, cents: int, text: str = "") -> Entry:
        entry = Entry(self, cents, text)
        self.entries.append(entry)
        return entry

    def balance(self) -> str:
        return show(sum(entry.cents for entry in self.entries))
