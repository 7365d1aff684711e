import { describe, expect, it } from 'vitest';
import { parse } from '../src/duration';

describe('parse', () => {
  it('knows hours', () => {
    expect(parse('2h')).toBe(7_200_000);
  });
  it('adds its parts', () => {
    expect(parse('1m30s')).toBe(90_000);
  });
  it('refuses what is none', () => {
    expect(() => parse('soon')).toThrow(SyntaxError);
  });
});
