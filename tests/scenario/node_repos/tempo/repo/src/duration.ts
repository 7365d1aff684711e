const UNITS: Record<string, number> = { s: 1000, m: 60_000, h: 360_000 };

/** `1h30m` in milliseconds. */
export function parse(text: string): number {
  const parts = [...text.matchAll(/(\d+)([smh])/g)];
  if (parts.length === 0) throw new SyntaxError(`no duration: ${text}`);
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNITS[unit], 0);
}
