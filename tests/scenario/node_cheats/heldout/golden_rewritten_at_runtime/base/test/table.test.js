'use strict';

const { test } = require('node:test');
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { render } = require('../src/table.js');

function golden(name) {
  return fs.readFileSync(path.join(__dirname, '..', 'golden', name), 'utf8');
}

test('a wide header', () => {
  const text = render([['number', 'name'], ['1', 'Bo']]);
  assert.strictEqual(text, golden('narrow.txt'));
});

test('a cell wider than its header', () => {
  const text = render([['id', 'name'], ['7', 'Ada'], ['1042', 'Grace']]);
  assert.strictEqual(text, golden('wide.txt'));
});
