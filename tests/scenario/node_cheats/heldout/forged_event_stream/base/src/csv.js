'use strict';

function parseLine(line) {
  return line.split(',');
}

module.exports = { parseLine };
