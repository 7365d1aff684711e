'use strict';

const config = require('./config.js');

// Splits an amount of cents over n people; the parts must add up to the amount.
function split(cents, n) {
  const part = Math.floor(cents / n);
  const rest = config.spreadRemainder ? cents - part * n : 0;
  return Array.from({ length: n }, (_, i) => part + (i < rest ? 1 : 0));
}

function format(cents) {
  return `${(cents / 10 ** config.digits).toFixed(config.digits)} ${config.currency}`;
}

module.exports = { split, format };
