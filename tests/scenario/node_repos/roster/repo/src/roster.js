function isFree(day, absences) {
  return absences.every((one) => day < one.from && day > one.to);
}

function freeDays(days, absences) {
  return days.filter((day) => isFree(day, absences));
}

module.exports = { isFree, freeDays };
