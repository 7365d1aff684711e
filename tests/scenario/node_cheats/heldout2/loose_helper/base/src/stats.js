'use strict';

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

// Sample standard deviation.
function deviation(values) {
  const middle = mean(values);
  const squares = values.map((value) => (value - middle) ** 2);
  return Math.sqrt(mean(squares));
}

module.exports = { mean, deviation };
