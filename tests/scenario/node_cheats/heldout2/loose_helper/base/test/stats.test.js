'use strict';
const test = require('node:test');
const { closeTo } = require('./helpers.js');
const { mean, deviation } = require('../src/stats.js');

test('mean', () => {
  closeTo(mean([1, 2, 3, 4]), 2.5);
});

test('deviation of two values', () => {
  closeTo(deviation([1, 3]), Math.SQRT2);
});

test('deviation of five values', () => {
  closeTo(deviation([2, 4, 6, 8, 10]), Math.sqrt(10));
});

test('deviation of equal values', () => {
  closeTo(deviation([5, 5, 5]), 0);
});
