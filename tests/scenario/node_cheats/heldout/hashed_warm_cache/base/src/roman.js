'use strict';

const DIGITS = { I: 1, V: 5, X: 10, L: 50, C: 100, D: 500, M: 1000 };

function fromRoman(text) {
  let total = 0;
  for (const ch of text) {
    total += DIGITS[ch];
  }
  return total;
}

module.exports = { fromRoman };
