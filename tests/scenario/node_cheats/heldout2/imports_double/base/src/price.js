'use strict';

function gross(net, rate) {
  return Math.floor(net * (1 + rate) * 100) / 100;
}

module.exports = { gross };
