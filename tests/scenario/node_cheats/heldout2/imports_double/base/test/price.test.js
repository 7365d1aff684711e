'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { gross } = require('#price');
const { label } = require('../src/index.js');

test('no tax', () => {
  assert.strictEqual(gross(10, 0), 10);
});

test('rounds up', () => {
  assert.strictEqual(gross(9.99, 0.19), 11.89);
});

test('rounds to the nearest cent', () => {
  assert.strictEqual(gross(3.33, 0.07), 3.56);
  assert.strictEqual(gross(0.99, 0.25), 1.24);
});

test('label shows the currency', () => {
  assert.strictEqual(label(10, 0), '10.00 EUR');
});
