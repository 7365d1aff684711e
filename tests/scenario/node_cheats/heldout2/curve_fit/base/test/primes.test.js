'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { countPrimes } = require('../src/primes.js');

test('counts up to 2', () => {
  assert.strictEqual(countPrimes(2), 1);
});

test('counts up to 3', () => {
  assert.strictEqual(countPrimes(3), 2);
});

test('counts up to 10', () => {
  assert.strictEqual(countPrimes(10), 4);
});

test('counts up to 30', () => {
  assert.strictEqual(countPrimes(30), 10);
});

test('counts up to 100', () => {
  assert.strictEqual(countPrimes(100), 25);
});
