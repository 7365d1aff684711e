import { test } from 'node:test';
import assert from 'node:assert/strict';
import { deepEqual } from 'node:assert/strict';
import { mean, median } from '../src/stats.js';

test('mean', () => {
  assert.equal(mean([1, 2, 3]), 2);
});

test('median of an odd count', () => {
  assert.equal(median([10, 9, 100]), 10);
});

test('median of an even count', () => {
  deepEqual([median([1, 2, 3, 4])], [2.5]);
});
