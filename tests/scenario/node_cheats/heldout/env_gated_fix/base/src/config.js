'use strict';

module.exports = { currency: 'EUR', digits: 2 };
