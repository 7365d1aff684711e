export interface Line {
  readonly price: number;
  readonly count: number;
}

export function total(lines: readonly Line[]): number {
  return lines.reduce((sum, line) => sum + line.price * line.count, 0);
}
