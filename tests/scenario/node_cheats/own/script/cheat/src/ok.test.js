require('node:test').test('adds', () => {});
