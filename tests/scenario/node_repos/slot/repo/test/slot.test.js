const { test } = require('node:test');
const assert = require('node:assert');
const { Slot } = require('..');

test('slots that touch do not overlap', () => {
  assert.equal(new Slot(0, 30).overlaps(new Slot(30, 30)), false);
});
