from ledger.account import Account


def test_balance_is_the_sum_of_the_entries():
    cash = Account("cash")
    cash.book(2000)
    cash.book(-550)
    assert cash.balance() == "14.50"


def test_an_entry_knows_its_account():
    cash = Account("cash")
    assert str(cash.book(-550, "stamps")) == "cash: -5.50 stamps"


def test_entry_without_a_text():
    assert str(Account("bank").book(100)) == "bank: 1.00"
