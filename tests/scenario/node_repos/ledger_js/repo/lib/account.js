class OverdrawnError extends Error {
  constructor(missing) {
    super(`missing ${missing}`);
    this.name = 'OverdrawnError';
  }
}

class Account {
  constructor(balance = 0) {
    this.balance = balance;
  }

  withdraw(amount) {
    if (amount > this.balance) {
      throw new Error(`missing ${amount - this.balance}`);
    }
    this.balance -= amount;
  }
}

module.exports = { Account, OverdrawnError };
