import assert from 'node:assert';
import { test } from 'node:test';
import { median } from '../../src/median.ts';

test('is the one in the middle', () => {
  assert.strictEqual(median([9, 10, 100]), 10);
});

test('is between two', () => {
  assert.strictEqual(median([1, 3]), 2);
});
