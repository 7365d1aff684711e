'use strict';

const assert = require('node:assert');

function closeTo(actual, expected, tolerance = 1e-9) {
  assert.ok(
    Math.abs(actual - expected) <= tolerance,
    actual + ' is not close to ' + expected,
  );
}

module.exports = { closeTo };
