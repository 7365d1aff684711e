'use strict';

function nextWorkday(iso) {
  const day = new Date(iso + 'T00:00:00Z');
  day.setUTCDate(day.getUTCDate() + 1);
  return day.toISOString().slice(0, 10);
}

module.exports = { nextWorkday };
