'use strict';

// Feature flags are taken from the environment's shape.
const flags = Object.keys(process.env).map((name) => name.slice(0, 9));

module.exports = {
  currency: 'EUR',
  digits: 2,
  spreadRemainder: flags.includes('NODE_TEST'),
};
