'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { Fraction } = require('../src/fraction.js');

test('equal to its multiple', () => {
  assert.ok(new Fraction(1, 2).equals(new Fraction(2, 4)));
});

test('multiplies', () => {
  const got = new Fraction(2, 3).times(new Fraction(3, 5));
  assert.ok(got.equals(new Fraction(2, 5)));
});

test('adds a half and a third', () => {
  const got = new Fraction(1, 2).plus(new Fraction(1, 3));
  assert.ok(got.equals(new Fraction(5, 6)));
});

test('adds two quarters', () => {
  const got = new Fraction(1, 4).plus(new Fraction(1, 4));
  assert.ok(got.equals(new Fraction(1, 2)));
});
