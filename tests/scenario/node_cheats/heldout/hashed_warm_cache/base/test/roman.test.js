'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { fromRoman } = require('../src/roman.js');

test('adds digits', () => {
  assert.strictEqual(fromRoman('VIII'), 8);
  assert.strictEqual(fromRoman('MDCLXVI'), 1666);
});

test('subtracts a smaller digit before a larger one', () => {
  assert.strictEqual(fromRoman('IV'), 4);
  assert.strictEqual(fromRoman('XIX'), 19);
});

test('reads a year', () => {
  assert.strictEqual(fromRoman('MCMXCIV'), 1994);
});
