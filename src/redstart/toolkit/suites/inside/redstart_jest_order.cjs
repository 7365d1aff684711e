'use strict';
// The order in which Jest takes its files: by name, turned round, or shuffled by a seed.

const { REDSTART_ORDER: order, REDSTART_SEED: seed } = process.env;

module.exports = class {
  sort(tests) {
    const sorted = [...tests].sort((one, other) => (one.path < other.path ? -1 : 1));
    if (order === 'reversed') return sorted.reverse();
    let state = Number(seed) || 1;
    for (let at = sorted.length - 1; at > 0; at -= 1) {
      state = (state * 48271) % 2147483647;
      const other = state % (at + 1);
      [sorted[at], sorted[other]] = [sorted[other], sorted[at]];
    }
    return sorted;
  }

  shard(tests) {
    return tests;
  }

  allFailedTests(tests) {
    return tests;
  }

  cacheResults() {}
};
