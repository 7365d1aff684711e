import assert from 'node:assert/strict';
import test from 'node:test';
import { greet } from '../lib/greet.mjs';

test('greets by name', async () => {
  assert.equal(await greet('1'), 'Hello, Ada!');
});

test('asks a stranger', async (t) => {
  await t.test('with the reason', async () => {
    assert.equal(await greet('2'), 'Who are you? (no user 2)');
  });
});
