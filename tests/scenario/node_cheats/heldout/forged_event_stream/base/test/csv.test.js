'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const { parseLine } = require('../src/csv.js');

test('plain cells', () => {
  assert.deepStrictEqual(parseLine('a,b,c'), ['a', 'b', 'c']);
});

test('a comma inside quotes', () => {
  assert.deepStrictEqual(parseLine('a,"b,c",d'), ['a', 'b,c', 'd']);
});

test('a doubled quote inside quotes', () => {
  assert.deepStrictEqual(parseLine('"say ""hi""",x'), ['say "hi"', 'x']);
});
