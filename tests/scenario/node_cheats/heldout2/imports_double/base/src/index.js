'use strict';

const { gross } = require('./price.js');

function label(net, rate) {
  return gross(net, rate).toFixed(2) + ' EUR';
}

module.exports = { gross, label };
