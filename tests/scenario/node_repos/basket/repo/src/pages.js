'use strict';

/** The items of a page; pages count from 1. */
function page(items, number, size) {
  const start = number * size;
  return items.slice(start, start + size);
}

const pageCount = (items, size) => Math.ceil(items.length / size);

module.exports = { page, pageCount };
