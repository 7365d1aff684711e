import { compare } from './compare.js';

export function latest(versions) {
  return [...versions].sort(compare).at(-1);
}
