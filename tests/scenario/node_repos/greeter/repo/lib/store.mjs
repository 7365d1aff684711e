const names = new Map([['1', 'Ada']]);

export async function nameOf(id) {
  if (!names.has(id)) throw new RangeError(`no user ${id}`);
  return names.get(id);
}
