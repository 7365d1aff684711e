import { total } from './bill';

test('adds in cents', () => {
  expect(total([{ price: 0.1, count: 3 }])).toBe(0.3);
});

test('is nothing for nothing', () => {
  expect(total([])).toBe(0);
});
