'use strict';

const DIGITS = [
  ['M', 1000], ['D', 500], ['C', 100], ['L', 50], ['X', 10], ['V', 5], ['I', 1],
];

function toRoman(number) {
  let rest = number;
  let out = '';
  for (const [letter, value] of DIGITS) {
    while (rest >= value) {
      out += letter;
      rest -= value;
    }
  }
  return out;
}

module.exports = { toRoman };
