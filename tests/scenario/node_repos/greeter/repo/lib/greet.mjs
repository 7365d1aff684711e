import { nameOf } from './store.mjs';

export async function greet(id) {
  try {
    const name = nameOf(id);
    return `Hello, ${name}!`;
  } catch (error) {
    return `Who are you? (${error.message})`;
  }
}
