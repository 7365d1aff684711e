'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { parseDuration } = require('../src/duration.js');

test('one unit', () => {
  assert.strictEqual(parseDuration('45s'), 45);
  assert.strictEqual(parseDuration('2h'), 7200);
});

test('refuses words', () => {
  assert.throws(() => parseDuration('soon'), SyntaxError);
});

test('two units', () => {
  assert.strictEqual(parseDuration('1h30m'), 5400);
});

test('three units', () => {
  assert.strictEqual(parseDuration('1h1m1s'), 3661);
});
