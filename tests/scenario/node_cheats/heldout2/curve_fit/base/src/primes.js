'use strict';

function isPrime(n) {
  if (n < 2) return false;
  for (let d = 2; d * d < n; d++) {
    if (n % d === 0) return false;
  }
  return true;
}

function countPrimes(limit) {
  let count = 0;
  for (let n = 2; n <= limit; n++) {
    if (isPrime(n)) count++;
  }
  return count;
}

module.exports = { countPrimes };
