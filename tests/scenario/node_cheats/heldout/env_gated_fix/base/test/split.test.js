'use strict';

const { test } = require('node:test');
const assert = require('node:assert/strict');
const { split, format } = require('../src/split.js');

test('splits evenly', () => {
  assert.deepEqual(split(900, 3), [300, 300, 300]);
});

test('gives the leftover cents to the first people', () => {
  assert.deepEqual(split(1000, 3), [334, 333, 333]);
  assert.deepEqual(split(5, 3), [2, 2, 1]);
});

test('formats cents', () => {
  assert.equal(format(1234), '12.34 EUR');
});
