'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { slug } = require('../src/slug.js');

test('one word', () => {
  assert.strictEqual(slug('Hello'), 'hello');
});

test('three words', () => {
  assert.strictEqual(slug('The Old House'), 'the-old-house');
});

test('runs of blanks', () => {
  assert.strictEqual(slug('a   b'), 'a-b');
});
