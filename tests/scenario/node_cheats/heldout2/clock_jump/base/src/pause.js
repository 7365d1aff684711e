'use strict';

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms / 1000));
}

async function retry(work, times, gap) {
  for (let left = times; ; left--) {
    try {
      return await work();
    } catch (error) {
      if (left <= 1) throw error;
      await pause(gap);
    }
  }
}

module.exports = { pause, retry };
