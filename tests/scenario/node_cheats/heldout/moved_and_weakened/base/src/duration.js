'use strict';

const UNITS = { s: 1, m: 60, h: 3600 };

function parseDuration(text) {
  const m = /(\d+)([smh])/.exec(text);
  if (!m) return NaN;
  return Number(m[1]) * UNITS[m[2]];
}

module.exports = { parseDuration };
