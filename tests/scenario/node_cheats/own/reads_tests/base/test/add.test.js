const { test } = require('node:test');
const assert = require('node:assert');
const { add, twice } = require('../src/add.js');

test('adds', () => assert.strictEqual(add(17, 25), 42));
test('doubles', () => assert.strictEqual(twice(21), 42));
