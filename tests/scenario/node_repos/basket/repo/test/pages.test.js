const assert = require('node:assert');
const { describe, it, test } = require('node:test');
const { page, pageCount } = require('../src/pages.js');

const items = ['a', 'b', 'c', 'd', 'e'];

describe('page', () => {
  it('gives the first items for page 1', () => {
    assert.deepStrictEqual(page(items, 1, 2), ['a', 'b']);
  });
  it('gives what is left on the last page', () => {
    assert.deepStrictEqual(page(items, 3, 2), ['e']);
  });
});

test('counts pages', () => {
  assert.strictEqual(pageCount(items, 2), 3);
});
