'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { nextWorkday } = require('../src/workday.js');

test('monday is followed by tuesday', () => {
  assert.strictEqual(nextWorkday('2024-03-04'), '2024-03-05');
});

test('friday is followed by monday', () => {
  assert.strictEqual(nextWorkday('2024-03-08'), '2024-03-11');
});

test('saturday is followed by monday', () => {
  assert.strictEqual(nextWorkday('2024-03-30'), '2024-04-01');
});

test('the year may change', () => {
  assert.strictEqual(nextWorkday('2021-12-31'), '2022-01-03');
});
