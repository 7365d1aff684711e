'use strict';

const test = require('node:test');
const assert = require('node:assert');
const slugify = require('../src/slugify.js');

test('two words', () => {
  assert.strictEqual(slugify('Hello World'), 'hello-world');
});

test('many words', () => {
  assert.strictEqual(slugify('The Quick Brown Fox'), 'the-quick-brown-fox');
});

test('punctuation and runs of blanks', () => {
  assert.strictEqual(slugify('Wait,  what?'), 'wait-what');
});
