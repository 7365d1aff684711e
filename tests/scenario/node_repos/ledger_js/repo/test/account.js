const assert = require('assert');
const { Account, OverdrawnError } = require('../lib/account');

describe('Account', () => {
  let account;

  beforeEach(() => {
    account = new Account(10);
  });

  it('pays out', () => {
    account.withdraw(4);
    assert.strictEqual(account.balance, 6);
  });

  it('says what is missing', () => {
    assert.throws(() => account.withdraw(12), OverdrawnError);
  });
});
