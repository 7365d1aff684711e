import { expect, test } from 'vitest';
import { mail, tag } from './inbox.js';

test('tags one mail', () => {
  expect(tag(mail('a'), 'x').tags).toEqual(['x']);
});

test('leaves the others alone', () => {
  tag(mail('a'), 'y');
  expect(mail('b')).toEqual({ subject: 'b', tags: [] });
});
