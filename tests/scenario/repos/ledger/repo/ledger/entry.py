from dataclasses import dataclass

from ledger.account import Account
from ledger.money import show


@dataclass
class Entry:
    account: Account
    cents: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.account.name}: {show(self.cents)} {self.text}".rstrip()
