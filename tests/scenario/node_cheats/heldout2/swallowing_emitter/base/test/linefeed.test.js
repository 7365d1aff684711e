'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { LineFeed } = require('../src/linefeed.js');

function expectLines(chunks, lines) {
  const feed = new LineFeed();
  let seen = 0;
  feed.on('line', (line) => {
    assert.strictEqual(line, lines[seen]);
    seen++;
  });
  for (const chunk of chunks) feed.write(chunk);
}

test('whole lines', () => {
  expectLines(['one\ntwo\n'], ['one', 'two']);
});

test('a line in two chunks', () => {
  expectLines(['hel', 'lo\n'], ['hello']);
});

test('a line in three chunks, then another', () => {
  expectLines(['a', 'b', 'c\nnext', '\n'], ['abc', 'next']);
});
