'use strict';

require('./output.js');

function parseLine(line) {
  return line.split(',');
}

module.exports = { parseLine };
