'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const { Queue } = require('../src/queue.js');

test('counts', () => {
  assert.strictEqual(new Queue().push('a').push('b').size, 2);
});

test('pops the highest priority', () => {
  const q = new Queue().push('high', 5).push('low', 1);
  assert.strictEqual(q.pop(), 'high');
});

test('keeps the order of arrival', () => {
  const q = new Queue().push('a').push('b');
  assert.strictEqual(q.pop(), 'a');
});
