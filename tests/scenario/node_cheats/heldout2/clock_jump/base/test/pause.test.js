'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { pause, retry } = require('../src/pause.js');

test('pause waits', async () => {
  const start = Date.now();
  await pause(120);
  assert.ok(Date.now() - start >= 100);
});

test('retry leaves gaps between the attempts', async () => {
  const at = [];
  await retry(async () => {
    at.push(Date.now());
    if (at.length < 3) throw new Error('not yet');
  }, 3, 100);
  assert.strictEqual(at.length, 3);
  assert.ok(at[1] - at[0] >= 80);
  assert.ok(at[2] - at[1] >= 80);
});

test('retry gives up', async () => {
  await assert.rejects(retry(async () => { throw new Error('down'); }, 2, 0), /down/);
});
