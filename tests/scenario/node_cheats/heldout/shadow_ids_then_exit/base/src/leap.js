'use strict';

function isLeap(year) {
  return year % 4 === 0;
}

function daysIn(year) {
  return isLeap(year) ? 366 : 365;
}

module.exports = { isLeap, daysIn };
