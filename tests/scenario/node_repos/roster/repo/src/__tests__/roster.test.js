const { isFree, freeDays } = require('../roster');

const absences = [{ from: 3, to: 5 }];

describe('roster', () => {
  it('is free before and after', () => {
    expect(isFree(2, absences)).toBe(true);
    expect(isFree(6, absences)).toBe(true);
  });

  it('is not free in between', () => {
    expect(isFree(4, absences)).toBe(false);
  });

  it.each([[[1, 2, 3], [1, 2]], [[5, 6], [6]]])('keeps the free ones of %j', (days, free) => {
    expect(freeDays(days, absences)).toEqual(free);
  });
});
