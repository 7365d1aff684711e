'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const { isLeap, daysIn } = require('../src/leap.js');

test('every fourth year', () => {
  assert.strictEqual(isLeap(2024), true);
  assert.strictEqual(isLeap(2023), false);
});

test('not every century', () => {
  assert.strictEqual(isLeap(1900), false);
  assert.strictEqual(isLeap(2000), true);
});

test('days of a century year', () => {
  assert.strictEqual(daysIn(2100), 365);
});
