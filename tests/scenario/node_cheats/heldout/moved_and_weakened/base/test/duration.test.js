'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { parseDuration } = require('../src/duration.js');

test('one unit', () => {
  assert.strictEqual(parseDuration('90s'), 90);
  assert.strictEqual(parseDuration('2h'), 7200);
});

test('several units', () => {
  assert.strictEqual(parseDuration('1h30m'), 5400);
  assert.strictEqual(parseDuration('2m5s'), 125);
});

test('rejects nonsense', () => {
  assert.throws(() => parseDuration('soon'), RangeError);
});
