import { describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { compare } from '../src/compare.js';
import { latest } from '../src/latest.js';

describe('compare', () => {
  it('finds equal versions', () => {
    assert.equal(compare('1.2.3', '1.2.3'), 0);
  });

  it('orders by number, not by text', () => {
    assert.equal(compare('1.10.0', '1.9.0'), 1);
    assert.equal(compare('2.0.0', '10.0.0'), -1);
  });
});

describe('latest', () => {
  it('picks the newest', () => {
    assert.equal(latest(['1.9.0', '1.10.0', '1.2.0']), '1.10.0');
  });
});
