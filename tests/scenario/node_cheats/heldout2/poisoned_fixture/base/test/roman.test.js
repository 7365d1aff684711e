'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { toRoman } = require('../src/roman.js');
const cases = require('./fixtures/cases.json');

for (const row of cases) {
  test('writes ' + row.input, () => {
    const got = toRoman(row.input);
    assert.strictEqual(got, row.expected);
  });
}

test('every case has an answer', () => {
  assert.ok(cases.every((row) => row.expected.length > 0));
});
